// Believable data for the mock: a shop with its executors, jobs and runs.
import { nextFires, parse } from './cron.mjs'

let lastId = 7_301_000_000_000_000_000n
export const newId = () => String((lastId += 17n))
export const iso = (ms) => (ms === null || ms === undefined ? null : new Date(ms).toISOString())
const now = Date.now()
const MIN = 60_000
const HOUR = 60 * MIN
const DAY = 24 * HOUR

const schema = (properties, required = []) => ({ type: 'object', properties, required, additionalProperties: false })
const dayInput = schema({ day: { type: 'string', format: 'date', description: 'business day' }, dryRun: { type: 'boolean', default: false } }, ['day'])

const handler = (name, description, inputSchema, idempotent, online) => ({
  name, description, inputSchema, outputSchema: null, idempotent, weight: 1, instancesOnline: online, firstSeenAt: iso(now - 40 * DAY), lastSeenAt: iso(now - 2_000),
  versions: [{ version: '2.4.1', build: 'b241', inForce: online > 0, instancesOnline: online, firstSeenAt: iso(now - 9 * DAY), lastSeenAt: iso(now - 2_000) }],
})

export const executors = [
  { id: newId(), name: 'shop', description: 'Orders, payments and stock', createdAt: iso(now - 41 * DAY), handlers: [
    handler('reconcile-totals', 'Compares order totals with payments', dayInput, true, 3),
    handler('cancel-unpaid', 'Cancels an order that was not paid in time', schema({ orderId: { type: 'integer' } }, ['orderId']), true, 3),
    handler('daily-revenue', 'Writes the revenue report as CSV', dayInput, false, 3),
    handler('sync-stock', 'Fetches stock levels from the warehouse', null, false, 3),
    handler('flaky-gateway', 'Calls a payment gateway that often fails', null, false, 3),
  ] },
  { id: newId(), name: 'warehouse', description: 'Picking lists and carriers', createdAt: iso(now - 30 * DAY), handlers: [handler('print-labels', 'Prints labels of the next wave', null, false, 1)] },
  { id: newId(), name: 'reports', description: '', createdAt: iso(now - 12 * DAY), handlers: [handler('monthly-close', 'Closes the books of a month', dayInput, false, 0)] },
]
const [shop, warehouse, reports] = executors

const instance = (executor, name, state, slots, running, extra = {}) => ({
  id: newId(), executorId: executor.id, name, host: `${name}.internal`, pid: 1000 + slots, version: '2.4.1', sdkVersion: '0.1.0', labels: { zone: 'a' }, slots, running, state,
  connectedAt: iso(now - 5 * HOUR), lastHeartbeatAt: iso(now - (state === 'online' ? 1_000 : 42_000)), startedAt: iso(now - 5 * HOUR), bootId: newId(), build: 'b241', goneAt: state === 'gone' ? iso(now - HOUR) : null, handlers: executor.handlers.map((h) => h.name), ...extra,
})
export const instances = [
  instance(shop, 'shop-1', 'online', 16, 5),
  instance(shop, 'shop-2', 'online', 16, 11, { labels: { zone: 'b', canary: 'true' }, version: '2.5.0-rc.1' }),
  instance(shop, 'shop-3', 'draining', 16, 1),
  instance(shop, 'shop-0', 'gone', 16, 0, { version: '2.3.9' }),
  instance(warehouse, 'picker-1', 'online', 4, 1),
  instance(reports, 'report-7f9c', 'silent', 8, 0),
]
export const tokens = [{ id: newId(), executorId: shop.id, name: 'kubernetes', createdAt: iso(now - 20 * DAY), expiresAt: iso(now + 345 * DAY), maxUses: null, uses: 14, declareJobs: true }]

export const text = (schedule) => {
  switch (schedule.kind) {
    case 'cron': {
      const known = { '*/10 * * * * *': ['Every 10 seconds', '每 10 秒'], '0 2 * * *': ['Every day at 02:00', '每天 02:00'], '0 0 2 * * *': ['Every day at 02:00:00', '每天 02:00:00'], '*/5 * * * *': ['Every 5 minutes', '每 5 分钟'] }[schedule.expr]
      return { en: known?.[0] ?? `At each match of ${schedule.expr}`, zh: known?.[1] ?? `每当匹配 ${schedule.expr}` }
    }
    case 'fixed_rate':
      return { en: `Every ${schedule.every}`, zh: `每隔 ${schedule.every}` }
    case 'once':
      return { en: `Once, at ${schedule.at}`, zh: `一次，于 ${schedule.at}` }
    default:
      return { en: 'On demand', zh: '按需' }
  }
}

export const seconds = (duration) => {
  let total = 0
  for (const [, n, unit] of (duration ?? '').matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) total += Number(n) * { ms: 0.001, s: 1, m: 60, h: 3600 }[unit]
  return total
}

export function fires(schedule, from, n) {
  if (schedule.kind === 'cron') return nextFires(parse(schedule.expr), schedule.zone, from, n)
  if (schedule.kind === 'fixed_rate') {
    const step = seconds(schedule.every) * 1000
    return step > 0 ? Array.from({ length: n }, (_, i) => (Math.floor(from / step) + 1 + i) * step) : []
  }
  if (schedule.kind === 'once' && schedule.at) return Date.parse(schedule.at) > from ? [Date.parse(schedule.at)] : []
  return []
}

const specDefaults = {
  description: '', labels: {}, input: null, misfire: { policy: 'skip', threshold: '5s' }, routing: 'round_robin', routingKey: '', requireLabels: '', preferLabels: '', blocking: 'serial', parallelism: 0, maxWaiting: 1000,
  retry: { maxAttempts: 1, delay: '10s', backoff: 1, maxDelay: '10m' }, sendRetry: { maxSends: 0, delay: '0s', backoff: 1, maxDelay: '1m' }, timeout: '0s', dispatchTimeout: '5m', onLost: 'auto', priority: 0, logLevel: 'default',
  owner: { name: '', email: '' }, alert: { onFailure: true, emails: [], webhookUrl: '', includeNoExecutor: true },
}

export const jobs = []
export const revisions = new Map()

export function putJob(spec, who, old) {
  const executor = executors.find((e) => e.id === spec.executor?.id) ?? shop
  const { webhookSecret, ...alert } = { ...specDefaults.alert, ...spec.alert }
  const job = {
    ...specDefaults, ...spec,
    id: old?.id ?? newId(),
    executor: { id: executor.id, name: executor.name },
    schedule: { ...spec.schedule, text: text(spec.schedule) },
    alert: { ...alert, webhookSecretSet: Boolean(webhookSecret) || (old?.alert.webhookSecretSet ?? false) },
    state: spec.state ?? 'enabled', pauseNote: spec.pauseNote ?? '', pausedBy: spec.state === 'paused' ? 'maria' : '', pausedAt: spec.state === 'paused' ? new Date().toISOString() : null, source: old?.source ?? spec.source ?? 'console', revision: (old?.revision ?? 0) + 1,
    lastRun: old?.lastRun ?? null, recentRuns: old?.recentRuns ?? [], createdAt: old?.createdAt ?? iso(Date.now()), updatedAt: iso(Date.now()), createdBy: old?.createdBy ?? who, updatedBy: who,
  }
  if (old) jobs[jobs.indexOf(old)] = job
  else jobs.push(job)
  const { id, lastRun, recentRuns, createdAt, updatedAt, createdBy, updatedBy, revision, ...stored } = job
  revisions.set(job.id, [{ revision, createdAt: updatedAt, createdBy: who, spec: structuredClone(stored) }, ...(revisions.get(job.id) ?? [])])
  return view(job)
}

const nextOf = new WeakMap()

/** The next fire of a job after now; kept until it has passed. */
export function nextFire(job) {
  let known = nextOf.get(job.schedule)
  if (known === undefined || known <= Date.now()) nextOf.set(job.schedule, (known = fires(job.schedule, Date.now(), 1)[0] ?? Infinity))
  return known === Infinity ? undefined : known
}

export function view(job) {
  const next = job.state === 'enabled' ? nextFire(job) : undefined
  const never = ['cron', 'fixed_rate'].includes(job.schedule.kind) && nextFire(job) === undefined
  return { ...job, nextFireAt: iso(next), neverFires: never, waiting: 0, pilesUp: false, executorOnline: instances.filter((i) => i.executorId === job.executor.id && i.state === 'online').length }
}

const cron = (expr, zone = 'Asia/Shanghai') => ({ kind: 'cron', expr, dialect: 'auto', zone })
const zhang = { name: '张伟', email: 'zhang.wei@shop.example' }
const maria = { name: 'Maria Rossi', email: 'maria@shop.example' }
const first = (spec) => putJob({ ...spec, executor: { id: (spec.in ?? shop).id }, in: undefined }, 'admin')
first({ name: 'reconcile-totals', handler: 'reconcile-totals', description: 'Compares the totals of all orders with the payments of the day.', labels: { team: 'pay', tier: '1' }, schedule: cron('*/10 * * * * *'), owner: zhang, input: { day: '2026-11-21', dryRun: false }, source: 'code' })
first({ name: 'daily-revenue', handler: 'daily-revenue', labels: { team: 'finance' }, schedule: cron('0 2 * * *'), owner: maria, input: { day: '2026-11-20' }, retry: { maxAttempts: 3, delay: '30s', backoff: 2, maxDelay: '10m' }, sendRetry: { maxSends: 0, delay: '0s', backoff: 1, maxDelay: '1m' }, timeout: '15m', alert: { onFailure: true, emails: ['oncall@shop.example'], webhookUrl: 'https://hooks.shop.example/carillon', webhookSecret: 'x', includeNoExecutor: true } })
first({ name: 'sync-stock', handler: 'sync-stock', schedule: { kind: 'fixed_rate', every: '45s', zone: 'UTC' }, owner: zhang, labels: { team: 'stock' } })
first({ name: 'flaky-gateway', handler: 'flaky-gateway', schedule: cron('*/5 * * * *', 'UTC'), owner: maria, retry: { maxAttempts: 3, delay: '5s', backoff: 2, maxDelay: '1m' } })
first({ name: 'print-labels', in: warehouse, handler: 'print-labels', schedule: cron('0 */15 8-18 * * *', 'Europe/Berlin'), owner: maria, state: 'paused', pauseNote: 'Printer is being repaired until Monday' })
first({ name: 'monthly-close', in: reports, handler: 'monthly-close', schedule: cron('0 0 4 1 * *', 'America/New_York'), owner: zhang })
first({ name: 'leap-nonsense', handler: 'sync-stock', schedule: cron('0 0 31 2 *', 'UTC'), owner: { name: '', email: '' } })
first({ name: 'cancel-unpaid', handler: 'cancel-unpaid', schedule: { kind: 'none', zone: 'UTC' }, owner: zhang, blocking: 'parallel' })
for (let i = 1; i <= 70; i++) first({ name: `import-feed-${String(i).padStart(2, '0')}`, handler: 'sync-stock', schedule: cron(`${i % 60} */2 * * *`, 'UTC'), owner: i % 2 ? zhang : maria, labels: { batch: 'feeds' } })
const revised = jobs[1]
putJob({ ...revised, timeout: '30m', owner: { name: 'Maria Rossi', email: 'maria.rossi@shop.example' }, alert: { ...revised.alert, webhookSecret: 'x' } }, 'maria', revised)

const totals = jobs.find((one) => one.name === 'reconcile-totals')
totals.declared = { executor: totals.executor, ownership: 'propose', removal: 'default', version: '2.4.1', gone: false, locked: false }
export const proposals = [{
  id: newId(), name: totals.name, executor: totals.executor, job: { id: totals.id, name: totals.name }, state: 'pending', hash: 'h2', version: '2.5.0-rc.1',
  proposedAt: iso(now - HOUR), decidedAt: null, decidedBy: '', proposed: { ...totals, timeout: '2m' }, changes: [{ field: 'timeout', from: totals.timeout, to: '2m' }],
}, {
  id: newId(), name: 'noon-report', executor: totals.executor, job: null, state: 'pending', hash: 'h3', version: '2.5.0-rc.1',
  proposedAt: iso(now - HOUR), decidedAt: null, decidedBy: '', proposed: { ...totals, name: 'noon-report', timeout: '10m', retry: { ...totals.retry, maxAttempts: 4 } }, changes: [],
}]

export const users = [
  { id: newId(), username: 'admin', password: 'a-good-long-password', role: 'admin', executors: [], platformAdmin: true, mustChangePassword: false, disabled: false, createdAt: iso(now - 41 * DAY) },
  { id: newId(), username: 'first', password: 'printed-once-1234', role: 'admin', executors: [], platformAdmin: false, mustChangePassword: true, disabled: false, createdAt: iso(now - 2 * DAY) },
  { id: newId(), username: 'vera', password: 'viewer-password-1', role: 'viewer', executors: [], platformAdmin: false, mustChangePassword: false, disabled: false, createdAt: iso(now - 9 * DAY) },
  { id: newId(), username: 'old-hand', password: 'x', role: 'operator', executors: [], platformAdmin: false, mustChangePassword: false, disabled: true, createdAt: iso(now - 30 * DAY) },
]
export const invitations = [{ id: newId(), username: 'paula', role: 'operator', executors: [], invitedBy: 'admin', createdAt: iso(now - DAY), expiresAt: iso(now + 6 * DAY) }]
export const myInvitations = [{ id: newId(), tenant: { id: '3', name: 'reports' }, role: 'viewer', executors: [], invitedBy: 'rita', createdAt: iso(now - DAY), expiresAt: iso(now + 6 * DAY) }]
export const apiKeys = [{ id: newId(), name: 'ci-deploy', prefix: 'ck_7Hq2', role: 'editor', executors: [], createdAt: iso(now - 8 * DAY), lastUsedAt: iso(now - 3 * MIN), expiresAt: iso(now + 357 * DAY) }]
export const tenants = [
  { id: '1', name: 'default', state: 'enabled', version: 1, createdAt: iso(now - 41 * DAY), deleteAt: null },
  { id: '2', name: 'pay', state: 'enabled', version: 1, createdAt: iso(now - 10 * DAY), deleteAt: null },
  { id: '3', name: 'reports', state: 'disabled', note: 'moved to the new team', version: 3, createdAt: iso(now - 9 * DAY), deleteAt: null },
  { id: '4', name: 'trial', state: 'deleted', version: 4, createdAt: iso(now - 30 * DAY), deleteAt: iso(now + 6 * DAY) },
]
export const nodes = [
  { id: newId(), name: 'node-a', bootId: newId(), version: '0.1.0', startedAt: iso(now - 26 * HOUR), sessions: 4, current: true },
  { id: newId(), name: 'node-b', bootId: newId(), version: '0.1.0', startedAt: iso(now - 3 * HOUR), sessions: 4, current: false },
]
export const deliveries = [
  { kind: 'run_failed', jobId: jobs[3].id, channel: 'email', target: 'maria@shop.example', state: 'delivered', attempts: 1, lastError: '', created: 4 * MIN },
  { kind: 'run_timed_out', jobId: jobs[1].id, channel: 'webhook', target: 'https://hooks.shop.example/carillon', state: 'failed', attempts: 8, lastError: 'POST: 503 Service Unavailable', created: 3 * HOUR },
  { kind: 'no_executor', jobId: jobs[5].id, channel: 'email', target: 'zhang.wei@shop.example', state: 'pending', attempts: 2, lastError: 'dial tcp 10.0.0.25:25: connection refused', created: 40_000 },
].map((d) => ({ id: newId(), runId: d.kind === 'no_executor' ? null : newId(), ...d, createdAt: iso(now - d.created), deliveredAt: d.state === 'delivered' ? iso(now - d.created + 900) : null, created: undefined }))
