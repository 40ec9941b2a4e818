// What only the pages of alerts ask: not part of what every page loads.
import { alertReceivers } from '../../api/alertReceivers'
import { http, present, take } from '../../api/client'
import { at, type DeliveriesQuery, type Get } from '../../api/endpoints'
import { list, queryClient, SLOW_MS } from '../../api/queries'
import type * as T from '../../api/types'

export type IncidentsQuery = Get<'/api/v1/alert-incidents'>

const change = (id: T.Id, version: number) => ({ ...at(id), header: { 'If-Match': `"${version}"` } })

export const alertApi = {
  incidents: (query: IncidentsQuery, signal?: AbortSignal) => take(http.GET('/api/v1/alert-incidents', { params: { query: present(query) }, signal })),
  incident: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/alert-incidents/{id}', { params: at(id), signal })),
  incidentEvents: (id: T.Id, cursor?: string, signal?: AbortSignal) =>
    take(http.GET('/api/v1/alert-incidents/{id}/events', { params: { ...at(id), query: present({ cursor }) }, signal })),
  acknowledge: (id: T.Id) => take(http.POST('/api/v1/alert-incidents/{id}/acknowledge', { params: at(id) })),
  resolve: (id: T.Id) => take(http.POST('/api/v1/alert-incidents/{id}/resolve', { params: at(id) })),

  silences: (all: boolean, signal?: AbortSignal) => take(http.GET('/api/v1/alert-silences', { params: { query: { limit: 200, ...(all ? { all } : {}) } }, signal })),
  createSilence: (body: T.AlertSilenceWrite) => take(http.POST('/api/v1/alert-silences', { body })),
  endSilence: (id: T.Id) => take(http.POST('/api/v1/alert-silences/{id}/end', { params: at(id) })),

  rule: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/alert-rules/{id}', { params: at(id), signal })),
  createRule: (body: T.AlertRuleWrite) => take(http.POST('/api/v1/alert-rules', { body })),
  updateRule: (id: T.Id, version: number, body: T.AlertRuleWrite) => take(http.PUT('/api/v1/alert-rules/{id}', { params: change(id, version), body })),
  deleteRule: (id: T.Id) => take(http.DELETE('/api/v1/alert-rules/{id}', { params: at(id) })),
  updateSettings: (version: number, body: T.AlertSettingsWrite) =>
    take(http.PUT('/api/v1/alert-settings', { params: { header: { 'If-Match': `"${version}"` } }, body })),

  channels: (signal?: AbortSignal) => take(http.GET('/api/v1/alert-channels', { params: { query: { limit: 200 } }, signal })),
  channel: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/alert-channels/{id}', { params: at(id), signal })),
  createChannel: (body: T.AlertChannelWrite) => take(http.POST('/api/v1/alert-channels', { body })),
  updateChannel: (id: T.Id, version: number, body: T.AlertChannelWrite) => take(http.PUT('/api/v1/alert-channels/{id}', { params: change(id, version), body })),
  deleteChannel: (id: T.Id) => take(http.DELETE('/api/v1/alert-channels/{id}', { params: at(id) })),
  testChannel: (id: T.Id) => take(http.POST('/api/v1/alert-channels/{id}/test', { params: at(id) })),
  previewChannel: (body: T.ChannelPreview) => take(http.POST('/api/v1/alert-channels/preview', { body })),

  deliveries: (query: DeliveriesQuery, signal?: AbortSignal) => take(http.GET('/api/v1/deliveries', { params: { query: present(query) }, signal })),
}

// All keys begin with "alerts": what is done to one thing may show in the others.
export const alertQueries = {
  incidents: (query: IncidentsQuery) => list(['alerts', 'incidents', query], (signal) => alertApi.incidents(query, signal)),
  incident: (id: T.Id) => list(['alerts', 'incident', id], (signal) => alertApi.incident(id, signal)),
  incidentEvents: (id: T.Id, cursor?: string) => list(['alerts', 'incident', id, 'events', cursor], (signal) => alertApi.incidentEvents(id, cursor, signal)),
  silences: (all: boolean) => list(['alerts', 'silences', all], (signal) => alertApi.silences(all, signal)),
  ...alertReceivers,
  rule: (id: T.Id) => list(['alerts', 'rule', id], (signal) => alertApi.rule(id, signal), SLOW_MS),
  channels: () => list(['alerts', 'channels'], (signal) => alertApi.channels(signal), SLOW_MS),
  channel: (id: T.Id) => list(['alerts', 'channel', id], (signal) => alertApi.channel(id, signal), SLOW_MS),
  deliveries: (query: DeliveriesQuery) => list(['alerts', 'deliveries', query], (signal) => alertApi.deliveries(query, signal)),
}

export function refreshAlerts(): void {
  void queryClient.invalidateQueries({ queryKey: ['alerts'] })
}
