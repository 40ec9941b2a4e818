// The API of a server that a step has started, for what a step needs before it looks.
import assert from 'node:assert/strict'
import { GUARD_MS } from './browser.mjs'

/** Signs in and resolves to a function that calls the API as this user. */
export async function client(url, password, username = 'admin') {
  const call = async (method, path, body, token) => {
    const options = { method, headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' } }
    if (body) options.body = JSON.stringify(body)
    const res = await fetch(`${url}/api/v1${path}`, options)
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`)
    return res.status === 204 ? undefined : res.headers.get('content-type')?.includes('json') ? res.json() : res.text()
  }
  const { accessToken } = await call('POST', '/auth/login', { username, password })
  return (method, path, body) => call(method, path, body, accessToken)
}

/** Asks until the answer is what is waited for, and resolves to it. */
export async function until(ask, good, what) {
  for (const end = Date.now() + GUARD_MS; Date.now() < end; ) {
    const answer = await ask()
    if (good(answer)) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.fail(what)
}
