// A development server which speaks the API contract from memory, so that
// pages can be built without a running Carillon. Not shipped, not a test of
// the product. Serves dist/ too when it was built.
//   node e2e/mock/server.mjs [--port 8099]
//   admin / a-good-long-password · first / printed-once-1234 (must change) · vera / viewer-password-1 (viewer)
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { randomBytes } from 'node:crypto'
import { extname, join, normalize } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { CronError, zoned } from './cron.mjs'
import * as d from './data.mjs'
import { routes as engineRoutes } from './engine.mjs'
import { addRun, finish, logs, runs, tick } from './runs.mjs'

const port = Number(process.argv[process.argv.indexOf('--port') + 1] || 8099) || 8099
const dist = new URL('../../dist/', import.meta.url).pathname
const sessions = new Map()
const cookies = new Map()
const idempotent = new Map()
const TOKEN_MS = Number(process.env.MOCK_TOKEN_SECONDS ?? 900) * 1000

class Refusal extends Error {
  constructor(status, code, detail, extra = {}) {
    super(detail)
    Object.assign(this, { status, code, extra })
  }
}
const notFound = () => new Refusal(404, 'not_found', 'no such thing in this tenant')

function issue(user, tenant, res) {
  const token = `mock.${randomBytes(12).toString('hex')}`
  const expires = Date.now() + TOKEN_MS
  sessions.set(token, { user, tenant, expires })
  const cookie = randomBytes(12).toString('hex')
  cookies.set(cookie, { user, tenant })
  res.setHeader('Set-Cookie', `carillon_refresh=${cookie}; HttpOnly; SameSite=Strict; Path=/api/v1/auth`)
  const { id, username, role, platformAdmin, mustChangePassword } = user
  return { accessToken: token, expiresAt: d.iso(expires), user: { id, username, role, platformAdmin, mustChangePassword, executors: [], preferences: user.preferences ?? {} }, tenant: { id: tenant.id, name: tenant.name } }
}

const page = (items, query) => {
  const from = Number(query.get('cursor') ?? 0)
  const limit = Math.min(Number(query.get('limit') ?? 50), 200)
  return { items: items.slice(from, from + limit), nextCursor: from + limit < items.length ? String(from + limit) : null }
}

function checkSchedule(schedule) {
  try {
    return d.fires(schedule, Date.now(), 10)
  } catch (err) {
    if (!(err instanceof CronError)) throw err
    throw new Refusal(422, 'invalid_cron', 'the cron expression is not valid', {
      errors: [{ location: 'body.schedule.expr', message: err.message, value: schedule.expr, position: err.position, length: err.length, hint: err.hint }],
    })
  }
}

function checkJob(body, self) {
  checkSchedule(body.schedule)
  const errors = []
  if (d.jobs.some((j) => j.name === body.name && j !== self)) errors.push({ location: 'body.name', message: 'a job of this name exists' })
  if (!/^[\w.-]+$/.test(body.name)) errors.push({ location: 'body.name', message: 'only letters, digits, "-", "_" and "."' })
  if (errors.length) throw new Refusal(422, 'validation_failed', 'the job is not valid', { errors })
}

const byId = (list, id) => list.find((one) => one.id === id) ?? (() => { throw notFound() })()
const listed = ({ input: _, ...job }) => job
const executorView = (e) => {
  const own = d.instances.filter((i) => i.executorId === e.id && i.state !== 'gone')
  return { refusedDeclarations: [], ...e, instancesOnline: own.filter((i) => i.state === 'online').length, instancesTotal: own.length }
}
const runView = ({ attempts: _a, input: _i, output: _o, ...run }) => run

const routes = [
  ['POST', '/auth/login', ({ body, res }) => {
    const user = d.users.find((u) => u.username === body.username && u.password === body.password && !u.disabled)
    if (!user) throw new Refusal(401, 'unauthenticated', 'user name or password is wrong')
    return issue(user, d.tenants.find((t) => t.name === body.tenant) ?? d.tenants[0], res)
  }, 'open'],
  ['POST', '/auth/refresh', ({ req, res }) => {
    const value = /carillon_refresh=(\w+)/.exec(req.headers.cookie ?? '')?.[1]
    const entry = cookies.get(value)
    if (!entry) throw new Refusal(401, 'unauthenticated', 'no session')
    cookies.delete(value)
    return issue(entry.user, entry.tenant, res)
  }, 'open'],
  ['POST', '/auth/logout', ({ req, res }) => {
    cookies.delete(/carillon_refresh=(\w+)/.exec(req.headers.cookie ?? '')?.[1])
    res.setHeader('Set-Cookie', 'carillon_refresh=; Max-Age=0; Path=/api/v1/auth')
  }],
  ['POST', '/auth/password', ({ body, user }) => {
    if (user.password !== body.current) throw new Refusal(401, 'unauthenticated', 'the current password is wrong')
    if (body.new.length < 12) throw new Refusal(422, 'validation_failed', 'too short', { errors: [{ location: 'body.new', message: 'at least 12 characters' }] })
    Object.assign(user, { password: body.new, mustChangePassword: false, executors: [] })
  }],
  ['POST', '/auth/tenant', ({ body, user, res }) => issue(user, byId(d.tenants, body.tenant), res)],
  ['GET', '/me', ({ user, tenant }) => ({ user, tenant, tenants: d.tenants.map((t) => ({ id: t.id, name: t.name, role: user.role })), permissions: [], kind: 'user' })],
  ['GET', '/version', () => ({ version: '0.1.0-mock', executorAddresses: ['127.0.0.1:7070'] })],
  ['GET', '/overview', () => overview()],
  ['GET', '/statistics', () => statistics(() => true)],
  ['GET', '/jobs/overdue', () => ({ items: [], more: false })],
  ...engineRoutes({ Refusal, byId }),
  ['GET', '/deliveries', ({ query }) => page(d.deliveries, query)],
  ['GET', '/users', ({ query }) => page(d.users.map(({ password: _, ...u }) => u), query)],
  ['POST', '/users', ({ body }) => {
    const password = body.password ?? randomBytes(9).toString('base64url')
    const user = { id: d.newId(), username: body.username, role: body.role, executors: body.executors ?? [], disabled: false, platformAdmin: false, mustChangePassword: true, createdAt: d.iso(Date.now()), password }
    d.users.push(user)
    return { ...user, password: body.password ? undefined : password }
  }, 201],
  ['PATCH', '/users/:id', ({ body, params }) => Object.assign(byId(d.users, params.id), body)],
  ['GET', '/invitations', ({ query }) => page(d.invitations, query)],
  ['POST', '/invitations', ({ body }) => {
    const one = { id: d.newId(), username: body.username, role: body.role, executors: body.executors ?? [], invitedBy: 'admin', createdAt: d.iso(Date.now()), expiresAt: d.iso(Date.now() + 7 * 86_400_000) }
    d.invitations.push(one)
    return one
  }, 201],
  ['DELETE', '/invitations/:id', ({ params }) => void d.invitations.splice(d.invitations.indexOf(byId(d.invitations, params.id)), 1)],
  ['GET', '/me/invitations', ({ query }) => page(d.myInvitations, query)],
  ['POST', '/me/invitations/:id/accept', ({ params }) => void d.myInvitations.splice(d.myInvitations.indexOf(byId(d.myInvitations, params.id)), 1)],
  ['POST', '/me/invitations/:id/decline', ({ params }) => void d.myInvitations.splice(d.myInvitations.indexOf(byId(d.myInvitations, params.id)), 1)],
  ['DELETE', '/users/:id', ({ params }) => void d.users.splice(d.users.indexOf(byId(d.users, params.id)), 1)],
  ['GET', '/api-keys', ({ query }) => page(d.apiKeys, query)],
  ['POST', '/api-keys', ({ body }) => {
    const secret = `ck_${randomBytes(24).toString('base64url')}`
    const key = { id: d.newId(), name: body.name, role: body.role, executors: body.executors ?? [], callHandlers: body.callHandlers ?? [], prefix: secret.slice(0, 7), createdAt: d.iso(Date.now()), lastUsedAt: null, expiresAt: body.expiresAt ?? null }
    d.apiKeys.push(key)
    return { ...key, secret }
  }, 201],
  ['DELETE', '/api-keys/:id', ({ params }) => void d.apiKeys.splice(d.apiKeys.indexOf(byId(d.apiKeys, params.id)), 1)],
  ['GET', '/tenants', ({ query }) => page(d.tenants, query)],
  ['POST', '/tenants', ({ body }) => { const t = { id: d.newId(), name: body.name, state: 'enabled', version: 1, createdAt: d.iso(Date.now()), deleteAt: null }; d.tenants.push(t); return t }, 201],
  ['PATCH', '/tenants/:id', ({ params, body }) => Object.assign(byId(d.tenants, params.id), { name: body.name })],
  ['POST', '/tenants/:id/disable', ({ params, body }) => Object.assign(byId(d.tenants, params.id), { state: 'disabled', note: body.note })],
  ['POST', '/tenants/:id/enable', ({ params }) => Object.assign(byId(d.tenants, params.id), { state: 'enabled', note: '' })],
  ['POST', '/tenants/:id/restore', ({ params }) => Object.assign(byId(d.tenants, params.id), { state: 'disabled', deleteAt: null })],
  ['DELETE', '/tenants/:id', ({ params, query }) => Object.assign(byId(d.tenants, params.id), { state: 'deleted', deleteAt: d.iso(Date.now() + Number.parseInt(query.get('grace'), 10) * 3_600_000) })],

  ['GET', '/executors', ({ query }) => page(d.executors.filter((e) => e.name.includes(query.get('q') ?? '')).map((e) => ({ ...executorView(e), handlers: e.handlers.length })), query)],
  ['POST', '/executors', ({ body }) => { const e = { id: d.newId(), name: body.name, description: body.description ?? '', createdAt: d.iso(Date.now()), handlers: [] }; d.executors.push(e); return { ...executorView(e), handlers: 0 } }, 201],
  ['GET', '/executors/:id', ({ params }) => executorView(byId(d.executors, params.id))],
  ['GET', '/executors/:id/instances', ({ params, query }) => page(d.instances.filter((i) => i.executorId === params.id && (i.state !== 'gone' || query.get('includeGone') === 'true')), query)],
  ['GET', '/executors/:id/join-tokens', ({ params, query }) => page(d.tokens.filter((t) => t.executorId === params.id), query)],
  ['POST', '/executors/:id/join-tokens', ({ params, body }) => {
    const token = { id: d.newId(), executorId: params.id, name: body.name ?? '', createdAt: d.iso(Date.now()), expiresAt: body.expiresAt ?? null, maxUses: body.maxUses ?? null, uses: 0, declareJobs: body.declareJobs ?? true }
    d.tokens.push(token)
    return { ...token, secret: `cjt_${randomBytes(24).toString('base64url')}` }
  }, 201],
  ['DELETE', '/executors/:id/join-tokens/:tokenId', ({ params }) => void d.tokens.splice(d.tokens.indexOf(byId(d.tokens, params.tokenId)), 1)],

  ['GET', '/executors/:id/handlers', ({ params, query }) => page(byId(d.executors, params.id).handlers, query)],
  ['GET', '/job-proposals', ({ query }) => page(d.proposals, query)],
  ['POST', '/job-proposals/:id/decline', ({ params }) => void d.proposals.splice(d.proposals.indexOf(byId(d.proposals, params.id)), 1)],
  ['POST', '/job-proposals/:id/accept', ({ params, user }) => {
    const one = byId(d.proposals, params.id)
    d.proposals.splice(d.proposals.indexOf(one), 1)
    return d.putJob(one.proposed, user.username, d.jobs.find((j) => j.name === one.name))
  }],

  ['POST', '/schedules/preview', ({ body }) => {
    const fires = checkSchedule(body.schedule)
    return { fires: fires.map((ms) => ({ at: d.iso(ms), zoned: zoned(ms, body.schedule.zone) })), neverFires: fires.length === 0, text: d.text(body.schedule) }
  }],
  ['GET', '/jobs', ({ query }) => {
    let list = d.jobs.map(d.view)
    const label = query.get('label')
    if (query.get('q')) list = list.filter((j) => j.name.includes(query.get('q')))
    if (query.get('executorId')) list = list.filter((j) => j.executor.id === query.get('executorId'))
    if (query.get('state')) list = list.filter((j) => j.state === query.get('state'))
    if (label) list = list.filter((j) => j.labels[label.split('=')[0]] === label.split('=')[1])
    const sort = query.get('sort')
    list.sort((a, b) => (sort === 'updatedAt' ? (b.updatedAt < a.updatedAt ? -1 : 1) : sort === 'nextFireAt' ? ((a.nextFireAt ?? '9') < (b.nextFireAt ?? '9') ? -1 : 1) : 0))
    return page(list.map(listed), query)
  }],
  ['POST', '/jobs', ({ body, user }) => { checkJob(body); return d.putJob(body, user.username) }, 201],
  ['GET', '/jobs/:id', ({ params }) => d.view(byId(d.jobs, params.id))],
  ['PUT', '/jobs/:id', ({ params, body, req, user }) => {
    const job = byId(d.jobs, params.id)
    if (!req.headers['if-match']) throw new Refusal(428, 'validation_failed', 'If-Match is needed')
    if (req.headers['if-match'] !== `"${job.revision}"`) throw new Refusal(412, 'revision_mismatch', 'the job was changed', { current: d.view(job) })
    checkJob(body, job)
    return d.putJob(body, user.username, job)
  }],
  ['DELETE', '/jobs/:id', ({ params }) => void d.jobs.splice(d.jobs.indexOf(byId(d.jobs, params.id)), 1)],
  ['POST', '/jobs/:id/pause', ({ params, body }) => d.view(Object.assign(byId(d.jobs, params.id), { state: 'paused', pauseNote: body.note ?? '', pausedBy: 'maria', pausedAt: new Date().toISOString() }))],
  ['POST', '/jobs/:id/resume', ({ params }) => d.view(Object.assign(byId(d.jobs, params.id), { state: 'enabled', pauseNote: '', pausedBy: '', pausedAt: null }))],
  ['POST', '/jobs/:id/run', ({ params, body, req, user }) => {
    const key = req.headers['idempotency-key']
    if (key && idempotent.has(key)) return idempotent.get(key)
    const job = byId(d.jobs, params.id)
    const run = addRun(job, 'manual', Date.now(), { requestedBy: user.username, note: body.note ?? '', ...(body.input === undefined ? {} : { input: body.input }) })
    if (key) idempotent.set(key, run)
    return runView(run)
  }, 201],
  ['GET', '/jobs/:id/statistics', ({ params }) => statistics((run) => run.jobId === params.id)],
  ['GET', '/jobs/:id/revisions', ({ params, query }) => page(d.revisions.get(params.id) ?? [], query)],
  ['GET', '/jobs/:id/next-fires', ({ params, query }) => {
    const job = byId(d.jobs, params.id)
    const fires = d.fires(job.schedule, Date.now(), Number(query.get('n') ?? 10))
    return { fires: fires.map((ms) => ({ at: d.iso(ms), zoned: zoned(ms, job.schedule.zone) })), neverFires: fires.length === 0 }
  }],

  ['GET', '/runs', ({ query }) => {
    const states = query.get('state')?.split(',')
    const want = (key, get) => (run) => !query.get(key) || get(run) === query.get(key)
    return page(
      runs
        .filter(want('jobId', (r) => r.jobId)).filter(want('executorId', (r) => r.executor.id)).filter(want('instanceId', (r) => r.instance?.id)).filter(want('cause', (r) => r.cause))
        .filter((r) => (!states || states.includes(r.state)) && r.jobName.includes(query.get('q') ?? '') && r.fireAt >= (query.get('from') ?? '') && r.fireAt <= (query.get('to') ?? '9'))
        .map(runView),
      query,
    )
  }],
  ['GET', '/runs/:id', ({ params }) => ({ ...byId(runs, params.id), jobSpec: null })],
  ['GET', '/runs/:id/log', ({ params, query, req }) => readLog(params.id, query, req)],
  ['GET', '/runs/:id/log/download', ({ params, res }) => {
    const entry = logs.get(params.id) ?? (() => { throw notFound() })()
    res.setHeader('Content-Type', 'text/plain; charset=utf-8')
    res.end(entry.lines.map((l) => `${l.at} ${l.level} ${l.msg}\n`).join(''))
    return res
  }],
  ['POST', '/runs/:id/cancel', ({ params }) => {
    const run = byId(runs, params.id)
    if (run.finishedAt) throw new Refusal(409, 'already_finished', 'the run has finished')
    if (run.state === 'running') run.state = 'cancelling'
    else finish(run, 'cancelled', Date.now())
    return runView(run)
  }, 202],
  ['POST', '/runs/:id/retry', ({ params, body, user }) => {
    const old = byId(runs, params.id)
    return runView(addRun(byId(d.jobs, old.jobId), 'retry', Date.now(), { requestedBy: user.username, input: body.input ?? old.input }))
  }, 201],
]

function readLog(id, query, req) {
  const entry = logs.get(id) ?? (() => { throw notFound() })()
  const after = Number(query.get('after') ?? 0)
  const before = Number(query.get('before') ?? 0)
  const limit = Math.min(Number(query.get('limit') ?? 1000), 5000)
  const ranks = ['DEBUG', 'INFO', 'WARN', 'ERROR']
  const wanted = (line) =>
    ranks.indexOf(line.level) >= ranks.indexOf(query.get('level') ?? 'DEBUG') &&
    JSON.stringify([line.msg, line.attrs]).toLowerCase().includes((query.get('q') ?? '').toLowerCase())
  const answer = () => {
    const lastLine = entry.lines.length
    const rest = { lastLine, complete: entry.complete, truncated: false, counts: entry.complete ? { written: lastLine, kept: lastLine, missing: [] } : null, next: after, prev: 0 }
    if (before > 0) {
      const lines = entry.lines.slice(0, before - 1).filter(wanted).slice(-limit)
      return { ...rest, lines, prev: lines.length === limit && lines[0].n > 1 ? lines[0].n : 0 }
    }
    const lines = entry.lines.slice(after).filter(wanted).slice(0, limit)
    const next = lines.length === limit ? lines.at(-1).n : Math.max(lastLine, after)
    return { ...rest, lines, next, complete: entry.complete && next >= lastLine }
  }
  if (entry.lines.length > after || entry.complete || !query.get('wait')) return answer()
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      entry.waiters.delete(done)
      resolve(answer())
    }
    const timer = setTimeout(done, 20_000)
    entry.waiters.add(done)
    req.on('close', done)
  })
}

const COUNTED = { succeeded: 'succeeded', failed: 'failed', timed_out: 'timedOut', lost: 'lost', cancelled: 'cancelled', missed: 'missed', discarded: 'discarded', excluded: 'excluded' }

/** How runs have ended in the last 24 hours, by hour. */
function statistics(pick) {
  const hour = 3_600_000
  const to = (Math.floor(Date.now() / hour) + 1) * hour
  const from = to - 24 * hour
  const none = (at) => ({ at: new Date(at).toISOString(), runs: 0, ...Object.fromEntries(Object.values(COUNTED).map((key) => [key, 0])), lateness: null, duration: null })
  const total = none(from)
  const byHour = new Map()
  for (const run of runs.filter((one) => one.finishedAt && COUNTED[one.state] && Date.parse(one.finishedAt) >= from && pick(one))) {
    const at = Math.floor(Date.parse(run.finishedAt) / hour) * hour
    if (!byHour.has(at)) byHour.set(at, none(at))
    for (const sum of [byHour.get(at), total]) {
      sum.runs++
      sum[COUNTED[run.state]]++
    }
  }
  return { from: total.at, to: new Date(to).toISOString(), step: 'hour', keptFrom: total.at, items: [...byHour.values()].sort((a, b) => (a.at < b.at ? 1 : -1)), total }
}

function overview() {
  const recent = (state) => runs.filter((r) => r.state === state).length
  const enabled = d.jobs.filter((j) => j.state === 'enabled')
  const next = enabled.flatMap((j) => d.fires(j.schedule, Date.now(), 2).map((ms) => ({ jobId: j.id, jobName: j.name, at: d.iso(ms) }))).sort((a, b) => (a.at < b.at ? -1 : 1))
  const online = d.executors.filter((e) => executorView(e).instancesOnline > 0).length
  return {
    runs24h: { succeeded: recent('succeeded'), failed: recent('failed'), timedOut: recent('timed_out'), lost: recent('lost'), missed: recent('missed'), excluded: recent('excluded'), running: recent('running'), due: recent('due') },
    jobs: { enabled: enabled.length, paused: d.jobs.length - enabled.length },
    executors: { online, offline: d.executors.length - online },
    nextFires: next.slice(0, 10),
    attention: [
      { kind: 'failing', jobId: d.jobs[3].id, text: { en: 'flaky-gateway failed 3 times in a row', zh: 'flaky-gateway 连续失败 3 次' } },
      { kind: 'no_executor', executorId: d.executors[2].id, text: { en: 'reports has no instance online, 1 job waits for it', zh: 'reports 没有在线实例，有 1 个任务在等待' } },
      { kind: 'never_fires', jobId: d.jobs[6].id, text: { en: 'leap-nonsense never fires', zh: 'leap-nonsense 永远不会触发' } },
    ],
  }
}

const compiled = routes.map(([method, path, handle, more]) => ({
  method, handle, open: more === 'open', status: typeof more === 'number' ? more : 200,
  pattern: new RegExp(`^/api/v1${path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`),
}))

function authenticate(req) {
  const session = sessions.get((req.headers.authorization ?? '').replace('Bearer ', ''))
  if (!session) throw new Refusal(401, 'unauthenticated', 'sign in first')
  if (session.expires < Date.now()) throw new Refusal(401, 'token_expired', 'the token has expired')
  return session
}

async function readBody(req) {
  let text = ''
  for await (const chunk of req) text += chunk
  try {
    return text ? JSON.parse(text) : {}
  } catch {
    throw new Refusal(400, 'malformed_json', 'the body is not JSON')
  }
}

const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }

function serveFile(url, res) {
  const wanted = normalize(url.pathname).replace(/^\/+/, '')
  const name = extname(wanted) ? wanted : 'index.html'
  const path = join(dist, `${name}.gz`)
  res.setHeader('Content-Security-Policy', "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
  if (!existsSync(path)) return void res.writeHead(404).end('not found')
  res.setHeader('Content-Type', TYPES[extname(name)] ?? 'application/octet-stream')
  res.end(gunzipSync(readFileSync(path)))
}

const server = createServer(async (req, res) => {
  const url = new URL(req.url, 'http://mock')
  if (!url.pathname.startsWith('/api/')) return serveFile(url, res)
  const requestId = `req_${randomBytes(6).toString('hex')}`
  res.setHeader('X-Request-Id', requestId)
  try {
    const route = compiled.find((one) => one.method === req.method && one.pattern.test(url.pathname))
    if (!route) throw notFound()
    const session = route.open ? {} : authenticate(req)
    const body = req.method === 'GET' ? undefined : await readBody(req)
    const params = route.pattern.exec(url.pathname).groups ?? {}
    const answer = await route.handle({ req, res, body, params, query: url.searchParams, ...session })
    if (answer === res) return
    if (answer === undefined) return void res.writeHead(204).end()
    res.writeHead(route.status, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer))
  } catch (err) {
    const refusal = err instanceof Refusal ? err : new Refusal(500, 'internal', String(err))
    if (!(err instanceof Refusal)) console.error(err)
    res.writeHead(refusal.status, { 'Content-Type': 'application/problem+json' })
    res.end(JSON.stringify({ type: 'about:blank', title: refusal.message, status: refusal.status, detail: refusal.message, code: refusal.code, instance: requestId, ...refusal.extra }))
  }
})

const world = { next: new Map() }
setInterval(() => tick(world), 500)
server.listen(port, '127.0.0.1', () => console.log(`mock on http://127.0.0.1:${port}`))
