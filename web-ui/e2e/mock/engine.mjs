// The engine's side of the mock: cluster, limits, calendars, explanations and
// backfills. MOCK_TROUBLE=1 shows a cluster in trouble: a clock that leapt, a
// replica, a node that is silent.
import * as d from './data.mjs'
import { runs } from './runs.mjs'

const trouble = process.env.MOCK_TROUBLE === '1'
const now = () => Date.now()
const both = (en, zh = en) => ({ en, zh })
const all = (items) => ({ items, nextCursor: null })

function cluster() {
  const nodes = d.nodes.map((node, i) => ({
    ...node, state: trouble && i === 1 ? 'silent' : 'live', connected: !trouble || i === 0, renewedAt: d.iso(now() - 300), heartbeatAgeMs: trouble && i === 1 ? 42_000 : 300,
    clockSkewMs: i * -180, clockHeld: trouble, partitions: 32, planningLagMs: trouble && i === 1 ? 9_000 : 0, executorAddress: `10.0.0.${i + 1}:7070`,
    zoneRules: { source: '/usr/share/zoneinfo', version: trouble && i === 1 ? '2025b' : '2026a', digest: trouble && i === 1 ? '79957fa62d10' : 'f2a120d907ff' },
  }))
  const partitions = Array.from({ length: 64 }, (_, id) => {
    const node = nodes[id % 2]
    const lost = trouble && id % 2 === 1 && id < 9
    return {
      id, state: lost ? 'expired' : 'held', nodeId: node.id, nodeName: node.name, bootId: node.bootId, term: String(3 + (id % 5)), until: d.iso(now() + (lost ? -4_000 : 1_800)),
      nextFireAt: d.iso(now() + 40_000), planningLagMs: lost ? 9_000 : 0, oldestDueAt: lost ? d.iso(now() - 7_000) : null, dueLagMs: lost ? 7_000 : 0,
    }
  })
  const findings = trouble ? [{ code: 'flush_log', fatal: false, message: 'innodb_flush_log_at_trx_commit is 2: a crash of the machine loses the last second' }] : []
  return {
    now: d.iso(now()), zonesDiffer: trouble, nodes, partitions,
    database: { kind: 'mariadb', version: '10.11.6', role: trouble ? 'replica' : 'primary', readOnly: trouble, latencyMs: 0.42, findings },
    clock: trouble ? { held: true, heldAt: d.iso(now() - 60_000), jumpMs: 3_600_000 } : { held: false, heldAt: null, jumpMs: 0 },
  }
}

const quotaLimits = new Map([['jobs', 20]])
const QUOTAS = { jobs: 10_000, fires_per_minute: 1_200_000, executors: 1_000, instances: 20_000, users: 1_000, api_keys: 1_000, api_calls_per_second: 2_000 }
const quotas = () => Object.entries(QUOTAS).map(([kind, byDefault]) => {
  const set = quotaLimits.get(kind) ?? -1
  return { kind, limit: set < 0 ? byDefault : set, used: 17, default: set < 0 }
})
const limits = new Map([[d.executors[0].id, 5]])
const limit = (id, name, kind) => {
  const maxRunning = limits.get(id) ?? 0
  return { kind, subject: { id, name }, maxRunning, running: Math.min(maxRunning, 5), waiting: maxRunning ? 3 : 0 }
}

/** Newest version first, by calendar. */
const calendars = new Map()
function putCalendar({ name, labels, spec }, who, id = d.newId()) {
  const versions = calendars.get(id) ?? []
  calendars.set(id, [{ version: versions.length + 1, createdAt: d.iso(now()), createdBy: who, name, labels, spec }, ...versions])
  return calendarOf(id)
}
function calendarOf(id) {
  const versions = calendars.get(id)
  const [{ name, labels, spec, ...last }, first] = [versions[0], versions.at(-1)]
  const count = (list = []) => list.length
  const status = { holidays: count(spec.holidays), makeUpDays: count(spec.makeUpDays), blackouts: count(spec.blackouts) }
  const times = { createdAt: first.createdAt, createdBy: first.createdBy, updatedAt: last.createdAt, updatedBy: last.createdBy }
  return { apiVersion: 'carillon/v1', kind: 'Calendar', id, name, labels, version: last.version, spec, status, ...times }
}
const briefOf = ({ spec: { holidays: _h, makeUpDays: _m, blackouts: _b, ...spec }, ...rest }) => ({ ...rest, spec })
putCalendar({ name: 'cn-2026', spec: { zone: 'Asia/Shanghai', holidays: [1, 2, 3].map((n) => ({ date: `2026-10-0${n}`, name: '国庆节' })) } }, 'admin')

function explain(run) {
  const stamps = { plannedAt: run.fireAt, claimedAt: run.claimedAt, offeredAt: run.offeredAt, grantedAt: run.grantedAt, startedAt: run.startedAt, finishedAt: run.finishedAt }
  const steps = Object.entries(stamps)
    .filter(([, at]) => at)
    .map(([name, at]) => ({ at, code: name.replace('At', ''), text: both(`The run was ${name.replace('At', '')}.`, `步骤：${name.replace('At', '')}`) }))
    .sort((a, b) => (a.at < b.at ? -1 : 1))
  const instances = d.instances
    .filter((one) => one.executorId === run.executor.id)
    .map((one) => ({ instance: { id: one.id, name: one.name }, verdict: one.id === run.instance?.id ? 'chosen' : 'not_chosen', text: both('By the routing of the job.', '按任务的路由策略。') }))
  const { attempts: _a, input: _i, output: _o, ...view } = run
  return { run: view, summary: both(`It is ${run.state}.`, `状态：${run.state}。`), party: run.state === 'failed' ? 'handler' : '', steps, instances, stamps, before: null, after: null }
}

export const routes = ({ Refusal, byId }) => {
  const known = (id) => calendars.get(id) ?? byId([], id)
  return [
    ['GET', '/cluster', cluster],
    ['POST', '/cluster/confirm-clock', () => ({ confirmedAt: d.iso(now()) })],
    ['GET', '/quotas', () => all(quotas())],
    ['GET', '/tenants/:id/quotas', () => all(quotas())],
    ['PUT', '/tenants/:id/quotas', ({ body }) => { for (const one of body.items) quotaLimits.set(one.kind, one.limit); return all(quotas()) }],
    ['GET', '/limits', () => all([...limits].filter(([, max]) => max > 0).map(([id]) => limit(id, d.executors.find((one) => one.id === id)?.name ?? d.tenants[0].name, d.executors.some((one) => one.id === id) ? 'executor' : 'tenant')))],
    ['PUT', '/executors/:id/limit', ({ params, body }) => { limits.set(params.id, body.maxRunning); return limit(params.id, byId(d.executors, params.id).name, 'executor') }],
    ['PUT', '/tenants/:id/limit', ({ params, body }) => { limits.set(params.id, body.maxRunning); return limit(params.id, byId(d.tenants, params.id).name, 'tenant') }],
    ['GET', '/calendars', () => all([...calendars.keys()].map((id) => briefOf(calendarOf(id))))],
    ['POST', '/calendars', ({ body, user }) => putCalendar(body, user.username), 201],
    ['GET', '/calendars/:id', ({ params }) => known(params.id) && calendarOf(params.id)],
    ['PUT', '/calendars/:id', ({ params, body, user, req }) => {
      if (req.headers['if-match'] !== `"${known(params.id)[0].version}"`) throw new Refusal(412, 'revision_mismatch', 'the calendar was changed')
      return putCalendar(body, user.username, params.id)
    }],
    ['DELETE', '/calendars/:id', ({ params }) => void calendars.delete(params.id)],
    ['GET', '/calendars/:id/versions', ({ params }) => all(known(params.id))],
    ['GET', '/calendars/:id/jobs', ({ params }) => all(d.jobs.filter((job) => job.schedule.calendars?.some((one) => one.id === params.id)).map(({ id, name }) => ({ id, name })))],
    ['GET', '/runs/:id/explain', ({ params }) => explain(byId(runs, params.id))],
    ['GET', '/jobs/:id/explain', ({ params, query }) => {
      const run = runs.find((one) => one.jobId === params.id && Date.parse(one.fireAt) === Date.parse(query.get('at')))
      return run ? explain(run) : { run: null, summary: both('The schedule does not fire at this instant.', '调度计划在该时刻不触发。'), party: '', steps: [], instances: [], stamps: null, before: null, after: null }
    }],
    ['GET', '/jobs/:id/backfills', () => all([])],
  ]
}
