// Uses a server by openapi-fetch over the types that openapi-typescript makes of
// docs/openapi.json: ../../clients.sh generates them beside this file, has both
// checked by tsc and runs it.
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.js'

const env = process.env as Record<'CARILLON_URL' | 'CARILLON_PASSWORD' | 'CARILLON_HANDLER', string>
let passed = 0
let failed = 0

function check(ok: boolean, what: string, body: unknown): void {
  if (ok) passed++
  else {
    failed++
    console.log(`FAIL ${what}: ${JSON.stringify(body)}`)
  }
}

async function trip(): Promise<void> {
  const anonymous = createClient<paths>({ baseUrl: env.CARILLON_URL })
  const wrong = await anonymous.POST('/api/v1/auth/login', { body: { username: 'admin', password: 'not this one' } })
  check(wrong.error?.code === 'unauthenticated', 'a wrong password is a typed problem', wrong.error)
  const login = await anonymous.POST('/api/v1/auth/login', { body: { username: 'admin', password: env.CARILLON_PASSWORD } })
  if (!login.data) throw new Error(`login: ${JSON.stringify(login.error)}`)
  const c = createClient<paths>({ baseUrl: env.CARILLON_URL, headers: { Authorization: `Bearer ${login.data.accessToken}` } })

  const name = `ts-${Date.now()}`
  const made = await c.POST('/api/v1/executors', { body: { name } })
  check(made.response.status === 201 && made.data?.name === name, 'create executor', made)
  const twice = await c.POST('/api/v1/executors', { body: { name } })
  check(twice.error?.code === 'conflict', 'the same name again', twice.error)

  let executor = ''
  let pages = 0
  let found = false
  let cursor: string | undefined
  do {
    const page = await c.GET('/api/v1/executors', { params: { query: { limit: 1, ...(cursor ? { cursor } : {}) } } })
    if (!page.data) throw new Error(`list executors: ${JSON.stringify(page.error)}`)
    pages++
    for (const one of page.data.items) {
      found ||= one.name === name
      if (one.instancesOnline > 0) executor = one.id
    }
    cursor = page.data.nextCursor ?? undefined
  } while (cursor)
  check(pages >= 2 && found && executor !== '', 'all executors by pages of one', { pages, found, executor })

  const write: components['schemas']['JobWrite'] = { name, executor: { id: executor }, handler: env.CARILLON_HANDLER, schedule: { kind: 'none' } }
  const job = await c.POST('/api/v1/jobs', { body: write })
  if (!job.data) throw new Error(`create job: ${JSON.stringify(job.error)}`)
  const id = job.data.id
  // Each of these types has null in it, or tsc says that the comparison is in vain.
  const missing: [null, null, null] = [job.data.declared as null, job.data.lastRun as null, job.data.nextFireAt as null]
  check(missing.every((one) => one === null), 'what is not there is null', job.data)
  const unfit = await c.POST('/api/v1/jobs', { body: { ...write, name: 'x', handler: 'there-is-none', schedule: { kind: 'cron' } } })
  check(unfit.response.status === 422 && (unfit.error?.errors?.length ?? 0) > 0, 'wrong fields are listed', unfit.error)
  const path = { id }
  const got = await c.GET('/api/v1/jobs/{id}', { params: { path } })
  check(got.data?.revision === 1, 'get job', got)

  const run = (query: { wait?: string }, key?: string) =>
    c.POST('/api/v1/jobs/{id}/run', { params: { path, query, ...(key ? { header: { 'Idempotency-Key': key } } : {}) }, body: {} })
  const first = await run({}, name)
  check(first.response.status === 201, 'run', first)
  const replay = await run({}, name)
  check(replay.response.status === 200 && replay.data?.id === first.data?.id, 'the same key', replay)
  const hurried = await run({ wait: '1ms' })
  check(hurried.response.status === 202 && hurried.data?.code === 'wait_timed_out', 'not waited for', hurried)
  const ended = await run({ wait: '30s' })
  check(ended.response.status === 201 && ended.data?.state === 'succeeded' && Boolean(ended.data.instance), 'waited for', ended)
  if (!ended.data) throw new Error('no run')
  const runPath = { id: ended.data.id }
  const whole = await c.GET('/api/v1/runs/{id}', { params: { path: runPath } })
  check(whole.data?.attempts.length === 1, 'get run', whole)
  const why = await c.GET('/api/v1/runs/{id}/explain', { params: { path: runPath } })
  check(why.data?.run?.id === runPath.id && why.data.stamps !== null && why.data.backfill === null && why.data.summary.en !== '', 'explain', why)
  const never = await c.GET('/api/v1/jobs/{id}/explain', { params: { path, query: { at: '2020-01-01T00:00:00Z' } } })
  check(never.data?.run === null && never.data.stamps === null, 'no run at that instant', never)
  const runs = await c.GET('/api/v1/runs', { params: { query: { jobId: id, limit: 2 } } })
  check(runs.data?.items.length === 2 && runs.data.nextCursor !== null, 'list runs', runs)
  const unchanged = await c.GET('/api/v1/runs/{id}', { params: { path: runPath, header: { 'If-None-Match': whole.response.headers.get('ETag') ?? '' } } })
  check(unchanged.response.status === 304, 'not sent again', unchanged)

  const gone = await c.DELETE('/api/v1/jobs/{id}', { params: { path } })
  check(gone.response.status === 204, 'delete', gone)
  const after = await c.GET('/api/v1/jobs/{id}', { params: { path } })
  check(after.error?.code === 'not_found', 'after that', after)
}

await trip().catch((err: unknown) => {
  failed++
  console.log('FAIL', err)
})
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
