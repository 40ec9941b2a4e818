// A job's settings in words: what the API calls "retry.maxAttempts" is what
// the form calls "Attempts". For proposals, revisions and conflicts.
import type { TFunction } from 'i18next'
import type { JobWrite, Proposal } from '../../api/types'
import { flatten, sameField, showValue } from '../../lib/diff'
import { parseDuration, wireDuration } from '../../lib/duration'
import { defaultBlocking, newJob } from './form/jobForm'
import { formatInstant, localZone } from '../../lib/time'

type JobSpec = Proposal['proposed']

/** In the order of the form. */
const LABELS = {
  name: 'jobs.form.name',
  description: 'jobs.form.description',
  labels: 'jobs.form.labels',
  executor: 'jobs.form.executor',
  'executor.id': 'jobs.form.executor',
  handler: 'jobs.form.handler',
  script: 'scripts.jobScript',
  input: 'jobs.form.input',
  'owner.name': 'jobs.form.ownerName',
  'owner.email': 'jobs.form.ownerEmail',
  'schedule.kind': 'jobs.form.kind',
  'schedule.expr': 'jobs.form.expr',
  'schedule.dialect': 'jobs.form.dialect',
  'schedule.every': 'jobs.form.every',
  'schedule.at': 'jobs.form.at',
  'schedule.instants': 'jobs.form.instants',
  'schedule.windowFrom': 'jobs.form.windowFrom',
  'schedule.windowTo': 'jobs.form.windowTo',
  'schedule.zone': 'jobs.form.zone',
  'schedule.startAt': 'jobs.form.startAt',
  'schedule.endAt': 'jobs.form.endAt',
  'schedule.jitter': 'jobs.form.jitter',
  'schedule.dstGap': 'jobs.form.dstGap',
  'schedule.dstOverlap': 'jobs.form.dstOverlap',
  'schedule.calendars': 'calendars.inJob',
  'schedule.calendarDays': 'proposals.calendarDays',
  'misfire.policy': 'jobs.form.misfirePolicy',
  'misfire.threshold': 'jobs.form.misfireThreshold',
  'misfire.window': 'proposals.misfireWindow',
  'misfire.maxRuns': 'proposals.misfireMaxRuns',
  routing: 'jobs.form.routing',
  routingKey: 'jobs.form.routingKey',
  requireLabels: 'jobs.form.requireLabels',
  preferLabels: 'jobs.form.preferLabels',
  blocking: 'jobs.form.blocking',
  parallelism: 'jobs.form.parallelism',
  maxWaiting: 'jobs.form.maxWaiting',
  'sharding.mode': 'jobs.form.sharding',
  'sharding.shards': 'jobs.form.shards',
  'sharding.onGone': 'jobs.form.onGone',
  'sharding.before': 'jobs.form.shard_before',
  'sharding.after': 'jobs.form.shard_after',
  'sharding.timeout': 'jobs.form.fireTimeout',
  'retry.maxAttempts': 'jobs.form.attempts',
  'retry.delay': 'jobs.form.retryDelay',
  'retry.backoff': 'jobs.form.backoff',
  'retry.maxDelay': 'jobs.form.maxDelay',
  'sendRetry.maxSends': 'jobs.form.maxSends',
  'sendRetry.delay': 'jobs.form.sendDelay',
  'sendRetry.backoff': 'jobs.form.sendBackoff',
  'sendRetry.maxDelay': 'jobs.form.sendMaxDelay',
  timeout: 'jobs.form.timeout',
  dispatchTimeout: 'jobs.form.dispatchTimeout',
  onLost: 'jobs.form.onLost',
  priority: 'jobs.form.priority',
  onSuccess: 'jobs.form.callbackSuccess',
  onFailure: 'jobs.form.callbackFailure',
  logLevel: 'jobs.form.logLevel',
  'alert.onFailure': 'jobs.form.onFailure',
  'alert.includeNoExecutor': 'jobs.form.includeNoExecutor',
  'alert.emails': 'jobs.form.emails',
  'alert.webhookUrl': 'jobs.form.webhookUrl',
} as const

const KINDS = {
  cron: 'jobs.form.kindCron',
  fixed_rate: 'jobs.form.kindRate',
  fixed_delay: 'jobs.form.kindDelay',
  once: 'jobs.form.kindOnce',
  instants: 'jobs.form.kindInstants',
  daily_window: 'jobs.form.kindWindow',
  none: 'jobs.form.kindNone',
} as const
export const MISFIRE = { skip: 'jobs.form.misfireSkip', once_now: 'jobs.form.misfireOnce', all: 'jobs.form.misfireAll' } as const
const DIALECTS = { auto: 'jobs.form.dialectAuto', standard: 'jobs.form.dialectStandard', seconds: 'jobs.form.dialectSeconds', quartz: 'jobs.form.dialectQuartz' } as const

/** What the form calls a setting; undefined for one that it does not know. */
export function settingLabel(path: string, t: TFunction): string | undefined {
  return path in LABELS ? t(LABELS[path as keyof typeof LABELS]) : undefined
}

/** What 0 and "0s" mean where it is neither a number nor "none". */
const ZERO = {
  parallelism: 'limits.none',
  'sendRetry.maxSends': 'jobs.form.maxSendsAny',
  'sendRetry.delay': 'jobs.form.sendDelayAny',
} as const

/** A setting's value as a person reads it. */
export function settingText(path: string, value: unknown, t: TFunction): string {
  if (value === undefined || value === null || value === '') return t('field.none')
  if (typeof value === 'boolean') return t(value ? 'schemaForm.yes' : 'schemaForm.no')
  if (Array.isArray(value)) return value.map((one) => itemText(one)).join(', ') || t('field.none')
  if (path === 'labels') return labelsText(value as Record<string, string>) || t('field.none')
  const zero = ZERO[path as keyof typeof ZERO]
  if (zero && (value === 0 || parseDuration(String(value)) === 0)) return t(zero)
  if (typeof value !== 'string') return showValue(value)
  return choiceText(path, value, t) ?? plainText(path, value, t)
}

const itemText = (one: unknown): string => (typeof one === 'object' && one !== null && 'name' in one ? String(one.name) : showValue(one))
const labelsText = (labels: Record<string, string>) => Object.entries(labels).map(([key, value]) => `${key}=${value}`).join(', ')

function plainText(path: string, value: string, t: TFunction): string {
  if (/\.(at|startAt|endAt|anchor)$/.test(path)) return `${formatInstant(value)} ${localZone}`
  // "0s" is how the API says none of these.
  if (/([dD]elay|[tT]imeout|threshold|window|every|jitter)$/.test(path) && !Number.isNaN(parseDuration(value))) return wireDuration(value, t) || t('field.none')
  return value
}

/** Of a choice that the form offers; undefined for other settings and for choices of a newer server. */
function choiceText(path: string, value: string, t: TFunction): string | undefined {
  const of = <T extends object>(texts: T): T[keyof T] | undefined => (value in texts ? texts[value as keyof T] : undefined)
  const choices = {
    'schedule.kind': () => of(KINDS),
    'schedule.dialect': () => of(DIALECTS),
    'schedule.dstGap': () => of({ run_at_gap_end: 'jobs.form.dstGapRun', skip: 'jobs.form.dstGapSkip' } as const),
    'schedule.dstOverlap': () => of({ once: 'jobs.form.dstOverlapOnce', both: 'jobs.form.dstOverlapBoth' } as const),
    'schedule.calendarDays': () => of({ not_holidays: 'calendars.days_not_holidays', workdays: 'calendars.days_workdays', all: 'calendars.days_all' } as const),
    'misfire.policy': () => of(MISFIRE),
    routing: () => `jobs.form.routing_${value as JobWrite['routing']}` as const,
    blocking: () => `jobs.form.blocking_${value as JobWrite['blocking']}` as const,
    'sharding.mode': () => of({ broadcast: 'jobs.form.sharding_broadcast', fixed: 'jobs.form.sharding_fixed' } as const),
    'sharding.onGone': () => of({ miss: 'jobs.form.onGone_miss', move: 'jobs.form.onGone_move' } as const),
    onLost: () => `jobs.form.onLost_${value as JobWrite['onLost']}` as const,
    logLevel: () => of({ default: 'jobs.form.logLevelDefault' } as const),
  }
  const key = path in choices ? choices[path as keyof typeof choices]() : undefined
  return key && t(key, { defaultValue: value })
}

export interface Setting {
  path: string
  value: unknown
  /** As a new job has it. */
  usual: unknown
}

// What has its own place on the page, or says nothing by itself.
const SHOWN_ELSEWHERE = ['name', 'description', 'labels', 'executor', 'executor.id', 'handler', 'script', 'input', 'owner.name', 'owner.email', 'schedule.kind', 'schedule.expr', 'schedule.dialect', 'schedule.every', 'schedule.at', 'schedule.zone']

const SCHEDULE = { jitter: '0s', dstGap: 'run_at_gap_end', dstOverlap: 'once', calendarDays: 'not_holidays' }

/** How a job behaves, in the order of the form: what is unlike a new job, and what is like it. */
export function settingsOf(spec: JobSpec): { special: Setting[]; usual: Setting[] } {
  const own = flatten(spec)
  const base = newJob()
  const usual = flatten({
    ...base,
    blocking: defaultBlocking(spec.schedule.kind),
    schedule: { ...base.schedule, ...SCHEDULE },
    misfire: { ...base.misfire, window: own['misfire.window'], maxRuns: own['misfire.maxRuns'] },
  })
  const all = Object.keys(LABELS)
    .filter((path) => !SHOWN_ELSEWHERE.includes(path) && path in own)
    .map((path) => ({ path, value: own[path], usual: usual[path] }))
  // Nothing is retried, so it does not matter how.
  const idle = (path: string) => (path.startsWith('retry.') && path !== 'retry.maxAttempts' && own['retry.maxAttempts'] === 1)
  const special = all.filter((one) => !sameField(one.value, one.usual) && !idle(one.path))
  return { special, usual: all.filter((one) => !special.includes(one)) }
}
