// What follows a run of a job, as texts and as what the API takes.
import type { Callback } from '../../../api/types'

export type CallbackKind = 'own' | 'other' | 'url' | 'message'

/** What a kind begins with, in the order of the choices. */
export const EMPTY_CALLBACKS: Record<CallbackKind, Callback> = {
  own: '',
  other: { handler: '', executor: { name: '' } },
  url: { url: '', timeout: '30s' },
  message: { connection: { name: '' }, target: {} },
}

export function callbackKind(value: Callback): CallbackKind {
  if (typeof value === 'string') return 'own'
  if (value.url !== undefined) return 'url'
  return value.connection ? 'message' : 'other'
}

/** One line about a callback; empty: there is none. */
export function callbackText(value: Callback): string {
  if (typeof value === 'string') return value
  if (value.url !== undefined) return [value.url, value.timeout].filter(Boolean).join(' · ')
  if (value.connection) return [value.connection.name ?? value.connection.id, ...Object.values(value.target ?? {})].join(' · ')
  return `${value.executor?.name ?? value.executor?.id ?? ''}/${value.handler ?? ''}`
}

/** The job that the runs of a callback belong to. */
export function callbackJob(value: Callback, executor: string): string {
  if (typeof value === 'string') return `callback:${executor}/${value}`
  if (value.url !== undefined) return 'callback:carillon/http'
  return value.connection ? 'callback:carillon/publish' : `callback:${callbackText(value)}`
}

/** As it is sent: without spaces around, and without what was left empty. */
export function cleanCallback(value: Callback): Callback {
  if (typeof value === 'string') return value.trim()
  const { timeout, headers, url, handler, ...rest } = value
  return {
    ...rest,
    ...(handler === undefined ? {} : { handler: handler.trim() }),
    ...(url === undefined ? {} : { url: url.trim() }),
    ...(timeout?.trim() ? { timeout: timeout.trim() } : {}),
    ...(headers && Object.keys(headers).length > 0 ? { headers } : {}),
  }
}

export const headersText = (headers: Record<string, string> | undefined): string =>
  Object.entries(headers ?? {})
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')

export function headersOf(lines: string): Record<string, string> {
  const out: Record<string, string> = {}
  for (const line of lines.split('\n')) {
    const at = line.indexOf(':')
    if (at > 0) out[line.slice(0, at).trim()] = line.slice(at + 1).trim()
  }
  return out
}
