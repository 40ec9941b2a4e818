// What crosses the API, in one file: the shapes of /api/v1 as the pages use
// them. Ids are decimal strings (64 bit does not fit a JS number), instants
// are RFC 3339 UTC with milliseconds, durations are Go-like strings ("1m30s").
// Once openapi.json is checked in, `npm run gen:api` writes schema.d.ts and
// these names become aliases of it.

export type Id = string
export type Instant = string
export type Duration = string
export type Json = unknown

export interface Bilingual {
  en: string
  zh: string
}

export interface Page<T> {
  items: T[]
  nextCursor: string | null
}

export interface ProblemItem {
  location?: string
  message: string
  value?: Json
  /** Byte offset of the fault inside a cron expression. */
  position?: number
  length?: number
  hint?: string
}

export interface Problem {
  type?: string
  title?: string
  status: number
  detail?: string
  code: string
  /** The request id. */
  instance?: string
  errors?: ProblemItem[]
  /** Only with revision_mismatch: the job as it is now. */
  current?: Job
}

export type Role = 'viewer' | 'operator' | 'editor' | 'admin'

export interface SessionUser {
  id: Id
  username: string
  role: Role
  platformAdmin: boolean
  mustChangePassword: boolean
}

export interface TenantRef {
  id: Id
  name: string
}

export interface Login {
  accessToken: string
  expiresAt: Instant
  user: SessionUser
  tenant: TenantRef
}

export interface Me {
  user: SessionUser
  tenant: TenantRef
  tenants: (TenantRef & { role: Role })[]
  permissions: string[]
  kind: 'user' | 'api_key'
}

export interface Tenant extends TenantRef {
  createdAt: Instant
}

export interface ApiKey {
  id: Id
  name: string
  prefix: string
  role: Role
  createdAt: Instant
  lastUsedAt: Instant | null
  expiresAt: Instant | null
}

export interface User {
  id: Id
  username: string
  role: Role
  disabled: boolean
  createdAt: Instant
  lastLoginAt?: Instant | null
}

export interface ExecutorRef {
  id: Id
  name: string
}

export interface Executor extends ExecutorRef {
  description: string
  instancesOnline: number
  instancesTotal: number
  handlers: number
  createdAt: Instant
}

export interface Handler {
  name: string
  description: string
  inputSchema: Json
  outputSchema: Json
  idempotent: boolean
  instancesOnline: number
  firstSeenAt: Instant
  lastSeenAt: Instant
}

export interface ExecutorDetail extends Omit<Executor, 'handlers'> {
  handlers: Handler[]
}

export type InstanceState = 'online' | 'draining' | 'silent' | 'gone'

export interface Instance {
  id: Id
  name: string
  host: string
  pid: number
  version: string
  sdkVersion: string
  labels: Record<string, string>
  slots: number
  running: number
  state: InstanceState
  connectedNodes: number
  connectedAt: Instant
  lastHeartbeatAt: Instant
  startedAt: Instant
  bootId: string
  handlers: string[]
}

export interface JoinToken {
  id: Id
  name: string
  createdAt: Instant
  expiresAt: Instant | null
  maxUses: number | null
  uses?: number
  lastUsedAt?: Instant | null
}

export type ScheduleKind = 'cron' | 'fixed_rate' | 'once' | 'none'
export type Dialect = 'auto' | 'standard' | 'seconds' | 'quartz'

export interface ScheduleSpec {
  kind: ScheduleKind
  expr?: string
  dialect?: Dialect
  every?: Duration
  at?: Instant | null
  zone: string
  startAt?: Instant | null
  endAt?: Instant | null
}

export interface Schedule extends ScheduleSpec {
  text?: Bilingual
}

export type MisfirePolicy = 'skip' | 'once_now'
export type Routing = 'first' | 'round_robin' | 'random'
export type Blocking = 'serial' | 'discard_later' | 'parallel'
export type OnLost = 'auto' | 'fail' | 'retry'
export type JobState = 'enabled' | 'paused'

export interface JobSpec {
  name: string
  description: string
  labels: Record<string, string>
  handler: string
  input: Json
  schedule: ScheduleSpec
  misfire: { policy: MisfirePolicy; threshold: Duration }
  routing: Routing
  blocking: Blocking
  retry: { maxAttempts: number; delay: Duration; backoff: number; maxDelay: Duration }
  timeout: Duration
  dispatchTimeout: Duration
  onLost: OnLost
  priority: number
  owner: { name: string; email: string }
  alert: {
    onFailure: boolean
    emails: string[]
    webhookUrl: string
    /** Write only; empty or absent keeps the stored one. */
    webhookSecret?: string
    includeNoExecutor: boolean
  }
}

export interface JobWrite extends JobSpec {
  executor: { id: Id }
  state?: JobState
}

export interface LastRun {
  id: Id
  state: RunState
  fireAt: Instant
  finishedAt: Instant | null
}

export interface Job extends Omit<JobSpec, 'alert' | 'schedule' | 'input'> {
  id: Id
  executor: ExecutorRef
  /** Absent in lists. */
  input?: Json
  schedule: Schedule
  alert: Omit<JobSpec['alert'], 'webhookSecret'> & { webhookSecretSet: boolean }
  state: JobState
  pauseNote: string
  source: 'console' | 'code'
  revision: number
  nextFireAt: Instant | null
  neverFires: boolean
  lastRun: LastRun | null
  executorOnline: number
  createdAt: Instant
  updatedAt: Instant
  createdBy: string
  updatedBy: string
}

export interface Revision {
  revision: number
  createdAt: Instant
  createdBy: string
  spec: Record<string, Json>
}

export interface Fire {
  at: Instant
  /** The same instant with the offset of the job's zone. */
  zoned: string
  note?: 'dst_gap' | 'dst_overlap'
}

export interface NextFires {
  fires: Fire[]
  neverFires: boolean
}

export interface Preview extends NextFires {
  text: Bilingual
}

export type RunState =
  | 'due'
  | 'offered'
  | 'running'
  | 'cancelling'
  | 'retry_wait'
  | 'succeeded'
  | 'failed'
  | 'timed_out'
  | 'cancelled'
  | 'lost'
  | 'missed'
  | 'discarded'

export type Cause = 'schedule' | 'manual' | 'api' | 'misfire' | 'retry'

export interface Run {
  id: Id
  jobId: Id
  jobName: string
  jobRevision: number
  executor: ExecutorRef
  handler: string
  cause: Cause
  fireAt: Instant
  state: RunState
  reason: string
  message: string
  attempt: number
  maxAttempts: number
  fence: number
  instance: { id: Id; name: string } | null
  note: string
  requestedBy: string
  claimedAt: Instant | null
  offeredAt: Instant | null
  grantedAt: Instant | null
  startedAt: Instant | null
  finishedAt: Instant | null
  notBefore: Instant | null
  deadlineAt: Instant | null
  latenessMs: number | null
  durationMs: number | null
  errorKind?: string
  error?: string
}

export interface Attempt {
  number: number
  fence: number
  instance: { id: Id; name: string } | null
  state: RunState
  offeredAt: Instant | null
  grantedAt: Instant | null
  startedAt: Instant | null
  finishedAt: Instant | null
  errorKind?: string
  error?: string
  stack?: string
  message?: string
}

export interface RunDetail extends Run {
  input: Json
  output: Json
  attempts: Attempt[]
  jobSpec: Record<string, Json> | null
}

export type LogLevel = 'DEBUG' | 'INFO' | 'WARN' | 'ERROR'

export interface LogLine {
  n: number
  at: Instant
  attempt: number
  level: string
  msg: string
  attrs?: Record<string, Json>
}

export interface LogPage {
  lines: LogLine[]
  /** Number of the last line stored so far; 0 when there is none. */
  lastLine: number
  /** True when no further line can come. */
  complete: boolean
  /** True when the server dropped lines beyond its size cap. */
  truncated: boolean
}

export interface AttentionItem {
  kind: string
  jobId?: Id
  executorId?: Id
  text: Bilingual
}

export interface Overview {
  runs24h: {
    succeeded: number
    failed: number
    timedOut: number
    lost: number
    missed: number
    running: number
    due: number
  }
  jobs: { enabled: number; paused: number }
  executors: { online: number; offline: number }
  nextFires: { jobId: Id; jobName: string; at: Instant }[]
  attention: AttentionItem[]
}

export interface Delivery {
  id: Id
  kind: string
  jobId: Id | null
  runId: Id | null
  channel: 'email' | 'webhook'
  target: string
  state: 'pending' | 'delivered' | 'failed'
  attempts: number
  lastError: string
  createdAt: Instant
  deliveredAt: Instant | null
}

export interface Node {
  id: Id
  name: string
  bootId: string
  version: string
  startedAt: Instant
  lastHeartbeatAt: Instant
  sessions: number
  current: boolean
}

export interface Version {
  version: string
  commit?: string
}
