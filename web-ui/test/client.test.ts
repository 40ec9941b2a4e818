import { http, HttpResponse } from 'msw'
import { setupServer } from 'msw/node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { api } from '../src/api/endpoints'
import { ApiError } from '../src/api/problem'
import { ensureSession, getSession, leave, refreshSession, resetSession, setSession } from '../src/api/session'
import type { Login } from '../src/api/types'
import { writtenInput } from '../src/ui/input/JsonEditor'
import { getConnection } from '../src/lib/connection'
import { newJob } from '../src/areas/jobs/form/jobForm'
import { writeJson } from '../src/lib/json'

const BASE = 'http://localhost/api/v1'
const login = (token: string, livesMs = 900_000): Login => ({
  accessToken: token,
  expiresAt: new Date(Date.now() + livesMs).toISOString(),
  user: { id: '1', username: 'admin', role: 'admin', platformAdmin: true, mustChangePassword: false, executors: [], preferences: {} },
  tenant: { id: '1', name: 'default' },
})

let refreshes = 0
let validToken = 'fresh'
let cookieGood = true
const seen: Request[] = []

const server = setupServer(
  http.post(`${BASE}/auth/refresh`, async () => {
    refreshes++
    await new Promise((resolve) => setTimeout(resolve, 20))
    return cookieGood ? HttpResponse.json(login(validToken)) : HttpResponse.json({ status: 401, code: 'unauthenticated' }, { status: 401 })
  }),
  http.get(`${BASE}/jobs`, ({ request }) => {
    seen.push(request)
    return request.headers.get('Authorization') === `Bearer ${validToken}`
      ? HttpResponse.json({ items: [], nextCursor: null })
      : HttpResponse.json({ status: 401, code: 'token_expired', instance: 'req_1' }, { status: 401 })
  }),
)

// The refresh is asked by path; a browser knows the page's address, Node needs it spelled out.
const nodeFetch = globalThis.fetch
beforeAll(() => {
  server.listen({ onUnhandledRequest: 'error' })
  const intercepted = globalThis.fetch
  globalThis.fetch = (input, init) => intercepted(typeof input === 'string' ? new URL(input, 'http://localhost') : input, init)
})
beforeEach(() => {
  resetSession()
  refreshes = 0
  validToken = 'fresh'
  cookieGood = true
  seen.length = 0
})
afterEach(() => server.resetHandlers())
afterAll(() => {
  server.close()
  globalThis.fetch = nodeFetch
})

describe('session', () => {
  it('starts from the refresh cookie', async () => {
    expect((await ensureSession())?.accessToken).toBe('fresh')
    expect((await ensureSession())?.accessToken).toBe('fresh')
    expect(refreshes).toBe(1)
  })

  it('is none without a valid cookie', async () => {
    cookieGood = false
    expect(await ensureSession()).toBeNull()
  })

  it('is kept when the server cannot be asked', async () => {
    setSession(login('old'))
    server.use(http.post(`${BASE}/auth/refresh`, () => HttpResponse.error()))
    await expect(refreshSession()).rejects.toMatchObject({ code: 'network', status: 0 })
    expect(getSession()?.accessToken).toBe('old')
  })
})

describe('calls', () => {
  it('renew the token once, however many are refused at the same time', async () => {
    setSession(login('stale'))
    await Promise.all(Array.from({ length: 8 }, () => api.jobs({})))
    expect(refreshes).toBe(1)
    expect(seen.filter((one) => one.headers.get('Authorization') === 'Bearer fresh')).toHaveLength(8)
  })

  it('renew before the end, without paying for a refusal', async () => {
    setSession(login('stale', 5_000))
    await api.jobs({})
    expect(refreshes).toBe(1)
    expect(seen).toHaveLength(1)
  })

  it('use the token that another call has brought meanwhile', async () => {
    setSession(login('stale'))
    server.use(
      http.get(`${BASE}/me`, ({ request }) => {
        const stale = request.headers.get('Authorization') !== 'Bearer fresh'
        // As if another call had renewed it while this one was under way.
        if (stale) setSession(login('fresh'))
        return stale ? HttpResponse.json({}, { status: 401 }) : HttpResponse.json({ kind: 'user' })
      }),
    )
    expect(await api.me()).toEqual({ kind: 'user' })
    expect(refreshes).toBe(0)
  })

  it('end the session when even a fresh token is refused', async () => {
    setSession(login('stale'))
    server.use(http.get(`${BASE}/jobs`, () => HttpResponse.json({ status: 401, code: 'unauthenticated' }, { status: 401 })))
    await expect(api.jobs({})).rejects.toMatchObject({ code: 'unauthenticated' })
    expect(getSession()).toBeNull()
    expect(refreshes).toBe(1)
  })

  it('end the session when the cookie is no longer good', async () => {
    setSession(login('stale'))
    cookieGood = false
    await expect(api.jobs({})).rejects.toMatchObject({ code: 'token_expired', requestId: 'req_1' })
    expect(getSession()).toBeNull()
  })

  it('are not sent any more while the session is signed out', async () => {
    setSession(login(validToken))
    let answer = () => {}
    const asked = new Promise<void>((resolve) => {
      server.use(
        http.post(`${BASE}/auth/logout`, async () => {
          resolve()
          await new Promise<void>((go) => (answer = go))
          return new HttpResponse(null, { status: 204 })
        }),
      )
    })
    leave()
    const out = api.logout()
    await asked
    await expect(api.jobs({})).rejects.toMatchObject({ status: 401 })
    expect(seen).toHaveLength(0)
    answer()
    await out
    expect(getSession()).toBeNull()
  })

  it('never renew for a wrong password', async () => {
    server.use(http.post(`${BASE}/auth/login`, () => HttpResponse.json({ status: 401, code: 'unauthenticated' }, { status: 401 })))
    await expect(api.login('admin', 'wrong')).rejects.toMatchObject({ code: 'unauthenticated' })
    expect(refreshes).toBe(0)
  })

  it('carry the revision and the idempotency key', async () => {
    setSession(login('fresh'))
    let headers: Headers | undefined
    server.use(
      http.put(`${BASE}/jobs/5`, ({ request }) => {
        headers = request.headers
        return HttpResponse.json({ status: 412, code: 'revision_mismatch', current: { id: '5', revision: 4 } }, { status: 412 })
      }),
      http.post(`${BASE}/jobs/5/run`, ({ request }) => {
        headers = request.headers
        return HttpResponse.json({ id: '9' }, { status: 201 })
      }),
    )
    const refused = await api.updateJob('5', 3, {} as never).catch((err: unknown) => err)
    expect(headers?.get('If-Match')).toBe('"3"')
    expect(refused).toBeInstanceOf(ApiError)
    expect((refused as ApiError).current?.revision).toBe(4)
    await api.runJob('5', {}, 'key-1')
    expect(headers?.get('Idempotency-Key')).toBe('key-1')
  })

  it('make an ApiError of an answer that is no problem document', async () => {
    setSession(login('fresh'))
    server.use(http.get(`${BASE}/jobs`, () => new HttpResponse('<html>bad gateway</html>', { status: 502, headers: { 'X-Request-Id': 'req_2' } })))
    await expect(api.jobs({})).rejects.toMatchObject({ status: 502, code: 'unavailable', requestId: 'req_2' })
  })

  it('tell the connection watcher when the server is silent, and when it is back', async () => {
    setSession(login('fresh'))
    server.use(http.get(`${BASE}/overview`, () => HttpResponse.error(), { once: true }))
    await expect(api.overview()).rejects.toMatchObject({ code: 'network' })
    expect(getConnection().trouble).toBe('silent')
    await api.jobs({})
    expect(getConnection().trouble).toBeUndefined()
  })

  it('leave empty filters out of the query', async () => {
    setSession(login('fresh'))
    await api.jobs({ q: '', state: undefined, limit: 5 })
    expect(new URL(seen[0]?.url ?? '').search).toBe('?limit=5')
  })
})

describe('without a session', () => {
  it('asks the cookie once and then does not bother the server', async () => {
    cookieGood = false
    await expect(api.jobs({})).rejects.toMatchObject({ status: 401, code: 'unauthenticated' })
    await expect(api.jobs({})).rejects.toMatchObject({ status: 401 })
    expect(refreshes).toBe(1)
    expect(seen).toHaveLength(0)
  })
})

describe('long numbers', () => {
  const BIG = '9007199254740993'
  const json = (text: string, status = 200) => new HttpResponse(text, { status, headers: { 'Content-Type': status < 300 ? 'application/json' : 'application/problem+json' } })

  it('arrive as they were sent, also with a refusal', async () => {
    server.use(
      http.get(`${BASE}/jobs/1`, () => json(`{"id":"1","input":{"order":${BIG}}}`)),
      http.put(`${BASE}/jobs/1`, () => json(`{"status":412,"code":"revision_mismatch","current":{"id":"1","input":{"order":${BIG}}}}`, 412)),
    )
    setSession(login('fresh'))
    expect(writeJson((await api.job('1')).input)).toBe(`{"order":${BIG}}`)
    const refused = (await api.updateJob('1', 1, newJob()).catch((err: unknown) => err)) as ApiError
    expect(refused.code).toBe('revision_mismatch')
    expect(writeJson(refused.current?.input)).toBe(`{"order":${BIG}}`)
  })

  it('are sent as they were typed', async () => {
    let body = ''
    server.use(
      http.post(`${BASE}/jobs/1/run`, async ({ request }) => {
        body = await request.text()
        return HttpResponse.json({ id: '2' })
      }),
    )
    setSession(login('fresh'))
    await api.runJob('1', { input: writtenInput(`  {"b": ${BIG}, "a": 1.0, "2": 1, "1": 2}  `), note: 'x' }, 'key')
    expect(body).toBe(`{"input":{"b": ${BIG}, "a": 1.0, "2": 1, "1": 2},"note":"x"}`)
  })
})
