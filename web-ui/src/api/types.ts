// Short names for what crosses the API. The shapes come from schema.d.ts,
// which `npm run gen:api` writes from docs/openapi.json; only what a page
// knows better than the description is said here. Ids are decimal strings
// (64 bit does not fit a JS number), instants are RFC 3339 UTC with
// milliseconds, durations are Go-like strings ("1m30s").
import type { components } from './schema'

type S = components['schemas']

export type Id = string
export type Json = unknown

export interface Page<T> {
  items: T[]
  nextCursor: string | null
}

export type Bilingual = S['Bilingual']
export type Problem = S['Problem']
export type ProblemItem = S['ProblemItem']

export type Login = S['Login']
export type Preferences = S['Preferences']
export type Me = S['Me']
export type Role = S['User']['role']
/** A part of an API key's role. */
export type KeyRole = Role | 'caller' | 'timer' | 'manager'
export type ApiKey = S['APIKey']
export type AuditEntry = S['AuditEntry']
export type User = S['User']
export type Invitation = S['Invitation']
export type MyInvitation = S['MyInvitation']
export type Tenant = S['Tenant']

export type Executor = S['Executor']
export type ExecutorDetail = S['ExecutorDetail']
export type RefusedDeclaration = S['RefusedDeclaration']
export type Handler = S['Handler']
export type HandlerVersion = S['HandlerVersion']
export type Instance = S['Instance']
export type FleetInstance = S['FleetInstance']
export type RemovedInstance = S['RemovedInstance']
export type InstanceState = Instance['state']
export type JoinToken = S['JoinToken']
export type Denial = S['Denial']
export type Refusal = S['Refusal']

export type Schedule = S['Schedule']
export type ScheduleSpec = Omit<S['ScheduleWrite'], 'text' | 'zone'> & { zone: string }
export type ScheduleKind = ScheduleSpec['kind']
export type Dialect = NonNullable<ScheduleSpec['dialect']>
export type Fire = S['Fire']

export type Run = S['Run']
export type RunState = Run['state']
export type Timer = S['Timer']
export type Statistics = S['Statistics']
export type RunEndings = S['RunEndings']
export type Spread = S['Spread']
export type FailureGroup = S['FailureGroup']
export type JobGroup = S['JobGroup']
export type BulkOperation = S['BulkOperation']
export type Cause = Run['cause']
export type Attempt = Omit<S['Attempt'], 'state'> & { state: RunState }
export type RunDetail = Omit<S['RunDetail'], 'attempts'> & { attempts: Attempt[] }
export type RunParts = S['RunParts']
export type Sharding = S['Sharding']
export type LogLine = S['LogLine']
export type LogPage = S['LogPage']
export type LogCounts = S['LogCounts']
export type LogLevel = 'DEBUG' | 'INFO' | 'WARN' | 'ERROR'

export type LastRun = Omit<S['LastRun'], 'state'> & { state: RunState }
export type Job = Omit<S['Job'], 'lastRun' | 'recentRuns'> & { lastRun: LastRun | null; recentRuns: LastRun[] }
export type JobState = Job['state']
export type Revision = S['Revision']
export type JobEvent = S['JobEvent']
export type Proposal = S['Proposal']
export type JobDeclaration = S['JobDeclaration']
export type Ref = S['Ref']

type Whole<T> = { [K in keyof T]-?: T[K] }

/**
 * A job as the form writes it: everything said, so that a default of the
 * server which changes later does not change stored jobs. The state is not in
 * it: it is set when creating, later by pause and resume.
 */
export interface JobWrite {
  name: string
  description: string
  labels: Record<string, string>
  executor: { id: Id }
  handler: string
  input: Json
  /** For handlers of agents that run scripts. */
  script?: S['ScriptChoice']
  schedule: ScheduleSpec
  misfire: Whole<Pick<S['MisfireWrite'], 'policy' | 'threshold'>> & Pick<S['MisfireWrite'], 'window' | 'maxRuns'>
  routing: Job['routing']
  routingKey: string
  requireLabels: string
  preferLabels: string
  blocking: Job['blocking']
  parallelism: number
  maxWaiting: number
  retry: Whole<S['RetryWrite']>
  sendRetry: Whole<S['SendRetryWrite']>
  timeout: string
  dispatchTimeout: string
  onLost: Job['onLost']
  priority: number
  onSuccess: Callback
  onFailure: Callback
  logLevel: Job['logLevel']
  owner: Whole<S['OwnerWrite']>
  alert: Whole<Omit<S['AlertWrite'], 'webhookSecret' | 'webhookSecretSet'>> & {
    /** Write only; absent keeps the stored one. */
    webhookSecret?: string
  }
  /** Absent: each fire is one run. */
  sharding?: Sharding
}

export type Callback = S['Callback']
export type CallbackTrial = S['CallbackTrial']

export type Explanation = S['Explanation']
export type ExplanationStep = S['ExplanationStep']
export type InstanceVerdict = S['InstanceVerdict']
export type Verdict = InstanceVerdict['verdict']

export type Calendar = S['Calendar']
export type CalendarSpec = S['CalendarSpec']
export type CalendarWrite = S['CalendarWrite']
export type CalendarVersion = S['CalendarVersion']
export type CalendarDay = S['CalendarDay']
export type Blackout = S['Blackout']
export type Weekday = NonNullable<CalendarSpec['weekend']>[number]
export type Exclusion = S['Exclusion']
export type ImportCalendar = S['ImportCalendar']

export type Script = S['Script']
export type ScriptWrite = S['ScriptWrite']
export type ScriptVersion = S['ScriptVersion']
export type ScriptDiff = S['ScriptDiff']
export type ScriptPolicy = S['ScriptPolicy']
export type ScriptLanguage = Script['spec']['language']

export type CallbackPolicyWrite = S['CallbackPolicyWrite']
export type CallbackSecret = S['CallbackSecret']
export type Connection = S['Connection']
export type ConnectionWrite = S['ConnectionWrite']
export type Broker = Connection['spec']['broker']
export type Mechanism = NonNullable<Connection['spec']['mechanism']>
export type MessageTest = S['MessageTest']
export type MessageTestResult = S['MessageTestResult']

export type Backfill = S['Backfill']
export type BackfillRequest = S['BackfillRequest']
export type BackfillScope = Backfill['scope']

export type Limit = S['Limit']
export type Quota = S['Quota']
export type QuotaExcess = S['QuotaExcess']
export type Cluster = S['Cluster']
export type ClusterNode = S['ClusterNode']
export type ClusterPartition = S['ClusterPartition']

export type Maintenance = S['Maintenance']
export type MaintenanceRequest = S['MaintenanceRequest']

export type Overview = S['Overview']
export type AttentionItem = S['AttentionItem']
export type Delivery = S['Delivery']
export type Incident = S['Incident']
export type IncidentEvent = S['IncidentEvent']
export type AlertMatch = S['AlertMatch']
/** That of a rule has names, and that of a silence ids. */
export type AlertRuleMatch = S['AlertRuleMatch']
export type AlertKind = NonNullable<AlertMatch['kinds']>[number]
export type AlertSilence = S['AlertSilence']
export type AlertSilenceWrite = S['AlertSilenceWrite']
export type AlertRule = S['AlertRule']
export type AlertRuleSpec = AlertRule['spec']
export type AlertRuleWrite = S['AlertRuleWrite']
export type AlertQuietHours = S['AlertQuietHours']
export type AlertSettings = S['AlertSettings']
export type AlertSettingsWrite = S['AlertSettingsWrite']
export type AlertChannel = S['AlertChannel']
export type AlertChannelWrite = S['AlertChannelWrite']
export type ChannelKind = AlertChannel['spec']['kind']
export type ChannelPreview = S['ChannelPreview']
export type ChannelTestResult = S['ChannelTestResult']
export type RenderedAlert = S['RenderedAlert']
