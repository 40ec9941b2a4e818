// Between a job and its form: what the API writes, what the fields hold.
import dayjs, { type Dayjs } from 'dayjs'
import type { Callback, Dialect, Job, JobWrite, ProblemItem, Schedule, ScheduleKind, ScheduleSpec, Sharding } from '../../../api/types'
import { cleanCallback } from './callback'
import { parseJson, writeJson } from '../../../lib/json'
import { instantToWall, isZone, localZone, wallToInstant } from '../../../lib/time'

export interface ScheduleFields {
  kind: ScheduleKind
  expr: string
  dialect: Dialect
  every: string
  /** Wall times in the schedule's zone. */
  at: Dayjs | null
  startAt: Dayjs | null
  endAt: Dayjs | null
  zone: string
  instants: string[]
  windowFrom: string
  windowTo: string
  jitter: string
  dstGap: NonNullable<ScheduleSpec['dstGap']>
  dstOverlap: NonNullable<ScheduleSpec['dstOverlap']>
  calendarIds: string[]
  calendarDays: NonNullable<ScheduleSpec['calendarDays']>
  /** What the form does not show and must not lose. */
  anchor?: string
}

export interface JobFields {
  name: string
  description: string
  labels: string[]
  executorId: string | undefined
  handler: string
  inputText: string
  /** For handlers script.LANGUAGE only. */
  script: { id: string | undefined; revision: number | null; args: string }
  schedule: ScheduleFields
  misfire: JobWrite['misfire']
  routing: JobWrite['routing']
  routingKey: string
  requireLabels: string
  preferLabels: string
  blocking: JobWrite['blocking']
  parallelism: number
  maxWaiting: number
  retry: JobWrite['retry']
  sendRetry: JobWrite['sendRetry']
  timeout: string
  dispatchTimeout: string
  onLost: JobWrite['onLost']
  priority: number
  onSuccess: Callback
  onFailure: Callback
  logLevel: JobWrite['logLevel']
  owner: JobWrite['owner']
  alert: { onFailure: boolean; emails: string[]; webhookUrl: string; webhookSecret: string; includeNoExecutor: boolean }
  sharding: ShardFields
  /** When creating only; later there are pause and resume. */
  paused: boolean
}

export interface ShardFields {
  mode: '' | Sharding['mode']
  shards: number
  onGone: NonNullable<Sharding['onGone']>
  before: string
  after: string
  timeout: string
}

/** What the API does with runs of one job that says nothing about it: those that are asked for run side by side. */
export function defaultBlocking(kind: ScheduleKind): JobWrite['blocking'] {
  return kind === 'none' || kind === 'once' ? 'parallel' : 'serial'
}

/** A new job; the defaults are those of the API. */
export function newJob(executorId?: string, handler?: string): JobWrite {
  return {
    name: '',
    description: '',
    labels: {},
    executor: { id: executorId ?? '' },
    handler: handler ?? '',
    input: null,
    schedule: { kind: 'cron', expr: '', dialect: 'auto', zone: localZone },
    misfire: { policy: 'skip', threshold: '5s' },
    routing: 'round_robin',
    routingKey: '',
    requireLabels: '',
    preferLabels: '',
    blocking: 'serial',
    parallelism: 0,
    maxWaiting: 1000,
    retry: { maxAttempts: 1, delay: '10s', backoff: 1, maxDelay: '10m' },
    sendRetry: { maxSends: 0, delay: '0s', backoff: 1, maxDelay: '1m' },
    timeout: '0s',
    dispatchTimeout: '5m',
    onLost: 'auto',
    priority: 0,
    onSuccess: '',
    onFailure: '',
    logLevel: 'default',
    owner: { name: '', email: '' },
    alert: { onFailure: true, emails: [], webhookUrl: '', includeNoExecutor: true },
  }
}

/** The schedule of a stored or proposed job, as it is written. */
export function scheduleOfJob(schedule: Schedule): ScheduleSpec {
  return cleanSchedule({ ...schedule, calendars: schedule.calendars?.map(({ id }) => ({ id })) })
}

/** The writable part of a stored job. */
export function writeOf(job: Job): JobWrite {
  const { schedule, alert } = job
  return {
    name: job.name,
    description: job.description,
    labels: job.labels,
    executor: { id: job.executor.id },
    handler: job.handler,
    input: job.input ?? null,
    ...(job.script ? { script: { id: job.script.id, ...(job.script.revision ? { revision: job.script.revision } : {}), args: job.script.args } } : {}),
    schedule: scheduleOfJob(schedule),
    misfire: cleanMisfire(job.misfire),
    routing: job.routing,
    routingKey: job.routingKey,
    requireLabels: job.requireLabels,
    preferLabels: job.preferLabels,
    blocking: job.blocking,
    parallelism: job.blocking === 'parallel' ? job.parallelism : 0,
    maxWaiting: job.maxWaiting,
    retry: { ...job.retry },
    sendRetry: { ...job.sendRetry },
    timeout: job.timeout,
    dispatchTimeout: job.dispatchTimeout,
    onLost: job.onLost,
    priority: job.priority,
    onSuccess: job.onSuccess ?? '',
    onFailure: job.onFailure ?? '',
    logLevel: job.logLevel,
    owner: { ...job.owner },
    alert: { onFailure: alert.onFailure, emails: alert.emails, webhookUrl: alert.webhookUrl, includeNoExecutor: alert.includeNoExecutor },
    ...(job.sharding ? { sharding: { ...job.sharding } } : {}),
  }
}

/** Window and cap belong to the policy that makes up all; beside another one they would not be valid. */
function cleanMisfire({ policy, threshold, ...all }: JobWrite['misfire']): JobWrite['misfire'] {
  return policy === 'all' ? { policy, threshold, ...all } : { policy, threshold }
}

/** Calendars say nothing to a schedule that has no fire times of its own. */
export function takesCalendars(kind: ScheduleKind): boolean {
  return FIELDS_OF[kind].includes('calendars')
}

/** Which fields a kind uses: a leftover of another kind would not be valid. */
const FIELDS_OF: Record<ScheduleKind, (keyof ScheduleSpec)[]> = {
  cron: ['expr', 'dialect', 'dstGap', 'dstOverlap', 'startAt', 'endAt', 'jitter', 'calendars', 'calendarDays'],
  fixed_rate: ['every', 'anchor', 'startAt', 'endAt', 'jitter', 'calendars', 'calendarDays'],
  fixed_delay: ['every', 'startAt', 'endAt', 'jitter', 'calendars', 'calendarDays'],
  once: ['at', 'jitter'],
  instants: ['instants', 'jitter', 'calendars', 'calendarDays'],
  daily_window: ['every', 'windowFrom', 'windowTo', 'dstGap', 'startAt', 'endAt', 'jitter', 'calendars', 'calendarDays'],
  none: [],
}

/** Only the fields which the kind uses, without those that are empty or say what is the default. */
function cleanSchedule(spec: ScheduleSpec): ScheduleSpec {
  const out: Record<string, unknown> = { kind: spec.kind, zone: spec.zone }
  for (const name of FIELDS_OF[spec.kind]) {
    const value = spec[name]
    const empty = value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
    if (!empty && DEFAULTS[name] !== value) out[name] = value
  }
  if (spec.kind === 'cron') out.dialect = spec.dialect ?? 'auto'
  if (!out.calendars) delete out.calendarDays
  return out as ScheduleSpec
}

/** The API's defaults: what is not sent. */
const DEFAULTS: Partial<Record<keyof ScheduleSpec, unknown>> = { jitter: '0s', dstGap: 'run_at_gap_end', dstOverlap: 'once', calendarDays: 'not_holidays' }

export function fieldsOf(write: JobWrite): JobFields {
  const { schedule } = write
  const zone = schedule.zone || 'UTC'
  const wall = (at: string | null | undefined) => (at ? dayjs(instantToWall(at, zone)) : null)
  return {
    name: write.name,
    description: write.description,
    labels: Object.entries(write.labels).map(([key, value]) => `${key}=${value}`),
    executorId: write.executor.id || undefined,
    handler: write.handler,
    inputText: write.input === null || write.input === undefined ? '' : writeJson(write.input, 2),
    script: { id: write.script?.id, revision: write.script?.revision ?? null, args: (write.script?.args ?? []).join('\n') },
    schedule: {
      kind: schedule.kind,
      expr: schedule.expr ?? '',
      dialect: schedule.dialect ?? 'auto',
      every: schedule.every ?? '',
      at: wall(schedule.at),
      startAt: wall(schedule.startAt),
      endAt: wall(schedule.endAt),
      zone,
      instants: schedule.instants ?? [],
      windowFrom: schedule.windowFrom ?? '',
      windowTo: schedule.windowTo ?? '',
      jitter: schedule.jitter ?? '0s',
      dstGap: schedule.dstGap ?? 'run_at_gap_end',
      dstOverlap: schedule.dstOverlap ?? 'once',
      anchor: schedule.anchor,
      calendarIds: schedule.calendars?.flatMap(({ id }) => id ?? []) ?? [],
      calendarDays: schedule.calendarDays ?? 'not_holidays',
    },
    misfire: { ...write.misfire },
    routing: write.routing,
    routingKey: write.routingKey,
    requireLabels: write.requireLabels,
    preferLabels: write.preferLabels,
    blocking: write.blocking,
    parallelism: write.parallelism,
    maxWaiting: write.maxWaiting,
    retry: { ...write.retry },
    sendRetry: { ...write.sendRetry },
    timeout: write.timeout,
    dispatchTimeout: write.dispatchTimeout,
    onLost: write.onLost,
    priority: write.priority,
    onSuccess: write.onSuccess,
    onFailure: write.onFailure,
    logLevel: write.logLevel,
    owner: { ...write.owner },
    alert: { ...write.alert, emails: [...write.alert.emails], webhookSecret: write.alert.webhookSecret ?? '' },
    sharding: {
      mode: write.sharding?.mode ?? '',
      shards: write.sharding?.shards ?? 4,
      onGone: write.sharding?.onGone ?? 'miss',
      before: write.sharding?.before ?? '',
      after: write.sharding?.after ?? '',
      timeout: write.sharding?.timeout ?? '0s',
    },
    paused: false,
  }
}

/** The schedule that the fields describe, or undefined while it is incomplete. */
export function scheduleOf(fields: ScheduleFields | undefined): ScheduleSpec | undefined {
  if (!fields || !isZone(fields.zone)) return undefined
  const instant = (wall: Dayjs | null) => (wall ? wallToInstant(wall.format('YYYY-MM-DDTHH:mm:ss'), fields.zone) : undefined)
  const { calendarIds, ...rest } = fields
  const spec = cleanSchedule({
    ...rest,
    calendars: (calendarIds ?? []).map((id) => ({ id })),
    expr: (fields.expr ?? '').trim(),
    every: (fields.every ?? '').trim(),
    windowFrom: (fields.windowFrom ?? '').trim(),
    windowTo: (fields.windowTo ?? '').trim(),
    jitter: (fields.jitter ?? '').trim(),
    at: instant(fields.at),
    startAt: instant(fields.startAt),
    endAt: instant(fields.endAt),
  })
  const complete = {
    cron: spec.expr,
    fixed_rate: spec.every,
    fixed_delay: spec.every,
    once: spec.at,
    instants: spec.instants?.length,
    daily_window: spec.every && spec.windowFrom && spec.windowTo,
    none: true,
  }[spec.kind]
  return complete ? spec : undefined
}

/** The language of a handler of agents that runs scripts; undefined for others. */
export function scriptLanguage(handler: string | undefined): string | undefined {
  return handler?.startsWith('script.') ? handler.slice('script.'.length) : undefined
}

function scriptOfFields({ handler, script }: JobFields): Pick<JobWrite, 'script'> {
  if (!scriptLanguage(handler.trim()) || !script?.id) return {}
  const args = script.args.split('\n').filter((line) => line !== '')
  return { script: { id: script.id, ...(script.revision ? { revision: script.revision } : {}), args } }
}

export function writeOfFields(fields: JobFields): JobWrite {
  const secret = fields.alert.webhookSecret?.trim()
  return {
    name: fields.name.trim(),
    description: fields.description.trim(),
    labels: Object.fromEntries(fields.labels.map((label) => splitLabel(label) ?? [label, ''])),
    executor: { id: fields.executorId ?? '' },
    handler: fields.handler.trim(),
    input: fields.inputText.trim() === '' ? null : parseJson(fields.inputText),
    ...scriptOfFields(fields),
    schedule: scheduleOf(fields.schedule) ?? { kind: fields.schedule.kind, zone: fields.schedule.zone },
    misfire: cleanMisfire({ ...fields.misfire, threshold: fields.misfire.threshold.trim() }),
    routing: fields.routing,
    // The field is not shown for other strategies, which know no key.
    routingKey: fields.routing === 'consistent_hash' ? (fields.routingKey ?? '').trim() : '',
    requireLabels: fields.requireLabels.trim(),
    preferLabels: fields.preferLabels.trim(),
    blocking: fields.blocking,
    parallelism: fields.blocking === 'parallel' ? fields.parallelism : 0,
    maxWaiting: fields.maxWaiting,
    retry: { ...fields.retry, delay: fields.retry.delay.trim(), maxDelay: fields.retry.maxDelay.trim() },
    sendRetry: { ...fields.sendRetry, delay: fields.sendRetry.delay.trim(), maxDelay: fields.sendRetry.maxDelay.trim() },
    timeout: fields.timeout.trim(),
    dispatchTimeout: fields.dispatchTimeout.trim(),
    onLost: fields.onLost,
    priority: fields.priority,
    onSuccess: cleanCallback(fields.onSuccess),
    onFailure: cleanCallback(fields.onFailure),
    logLevel: fields.logLevel,
    owner: { name: fields.owner.name.trim(), email: fields.owner.email.trim() },
    alert: {
      onFailure: fields.alert.onFailure,
      emails: fields.alert.emails.map((one) => one.trim()),
      webhookUrl: fields.alert.webhookUrl.trim(),
      includeNoExecutor: fields.alert.includeNoExecutor,
      ...(secret ? { webhookSecret: secret } : {}),
    },
    ...shardingOf(fields.sharding),
  }
}

/** Only what the mode uses, and no defaults. */
function shardingOf(fields: ShardFields): Pick<JobWrite, 'sharding'> {
  const { mode } = fields
  if (!mode) return {}
  const before = fields.before.trim()
  const after = fields.after.trim()
  const timeout = fields.timeout.trim()
  return {
    sharding: {
      mode,
      ...(mode === 'fixed' ? { shards: fields.shards } : { onGone: fields.onGone }),
      ...(before ? { before } : {}),
      ...(after ? { after } : {}),
      ...(timeout && timeout !== '0s' ? { timeout } : {}),
    },
  }
}

/** "team=pay" → ["team", "pay"]; undefined when it has no such form. */
export function splitLabel(label: string): [string, string] | undefined {
  const at = label.indexOf('=')
  return at > 0 ? [label.slice(0, at).trim(), label.slice(at + 1).trim()] : undefined
}

const RENAMED: Record<string, string[]> = {
  onSuccess: ['onSuccess'],
  onFailure: ['onFailure'],
  'executor.id': ['executorId'],
  'schedule.calendars': ['schedule', 'calendarIds'],
  executor: ['executorId'],
  script: ['script', 'id'],
  input: ['inputText'],
  state: ['paused'],
}

/** The form field that a server's complaint speaks of: "body.retry.delay" → ["retry","delay"]. */
export function fieldPath(item: ProblemItem): string[] | undefined {
  const location = item.location?.replace(/^body\./, '')
  if (!location) return undefined
  const renamed = Object.entries(RENAMED).find(([key]) => location === key || location.startsWith(`${key}.`) || location.startsWith(`${key}[`))
  if (renamed) return renamed[1]
  // A member of a list belongs to the field which holds the list.
  const path = location.replace(/\[\d+\].*$/, '').split('.')
  if (path[0] === 'labels') return ['labels']
  if (path[0] === 'alert' && path[1] === 'emails') return ['alert', 'emails']
  return path
}
