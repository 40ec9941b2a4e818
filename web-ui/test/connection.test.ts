// Is the server there, and is it still the one whose pages are open?
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ChunkError, loadChunk, whyMissing } from '../src/lib/chunk'
import { getConnection, reportAnswer, reportSilence, SILENT_MS, watchCall } from '../src/lib/connection'

const OWN = '/assets/index-old.js'
const page = (entry: string) => new Response(`<script type="module" crossorigin src="${entry}"></script>`)
const lost = () => Promise.reject(new TypeError('Failed to fetch'))
/** What a server answers to a question for its page, and to one for the asset. */
const server = (index: () => Response | Promise<never>, asset: () => Response | Promise<never> = () => new Response('')) =>
  vi.stubGlobal('fetch', (path: string) => Promise.resolve(path === '/' ? index() : asset()))
const failed = new TypeError('Failed to fetch dynamically imported module: http://127.0.0.1/assets/RunPage-1.js')

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('document', { querySelector: () => ({ getAttribute: () => OWN }) })
  reportAnswer(true)
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

describe('a chunk that does not come', () => {
  it.each([
    ['silent', 'without network', lost, undefined],
    ['silent', 'when a proxy answers', () => new Response('<html>bad gateway</html>', { status: 502 }), undefined],
    ['silent', 'when a page answers that is not ours', () => new Response('<html>please sign in to the network</html>'), undefined],
    ['silent', 'when the network goes in between', () => page(OWN), lost],
    ['outdated', 'when the server has the pages of another build', () => page('/assets/index-new.js'), undefined],
    ['outdated', 'when the asset is gone', () => page(OWN), () => new Response('', { status: 404 })],
    ['there', 'when the server has it', () => page(OWN), undefined],
  ] as const)('is %s %s', async (want, _, index, asset) => {
    server(index, asset)
    expect(await whyMissing(failed, OWN)).toBe(want)
  })

  it('is asked for until the network is back', async () => {
    let up = false
    server(() => (up ? page(OWN) : lost()) as Response)
    const load = vi.fn(() => (up ? Promise.resolve('it') : Promise.reject(failed)))
    const loaded = loadChunk(load)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(load.mock.calls.length).toBeGreaterThan(3)
    expect(getConnection()).toMatchObject({ trouble: 'silent', outdated: false })
    up = true
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await loaded).toBe('it')
  })

  it('is given up when the server has it and it does not load', async () => {
    server(() => page(OWN))
    const loaded = loadChunk(() => Promise.reject(failed)).catch((err: unknown) => err)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(await loaded).toBeInstanceOf(ChunkError)
  })

  it('is told as an upgrade, once it is one', async () => {
    server(() => page('/assets/index-new.js'))
    void loadChunk(() => Promise.reject(failed))
    await vi.advanceTimersByTimeAsync(10)
    expect(getConnection().outdated).toBe(true)
  })
})

describe('a call without an answer', () => {
  it('is silence after the bound, beside what it asked the server to wait', () => {
    watchCall(20_000)
    vi.advanceTimersByTime(20_000 + SILENT_MS - 1)
    expect(getConnection().trouble).toBeUndefined()
    vi.advanceTimersByTime(1)
    expect(getConnection().trouble).toBe('silent')
  })

  it('is slow, not silence, when others are answered meanwhile', () => {
    watchCall(0)
    vi.advanceTimersByTime(SILENT_MS / 2)
    reportAnswer(true)
    vi.advanceTimersByTime(SILENT_MS)
    expect(getConnection().trouble).toBeUndefined()
  })

  it('is over when it has ended', () => {
    watchCall(0)()
    vi.advanceTimersByTime(2 * SILENT_MS)
    expect(getConnection().trouble).toBeUndefined()
  })

  it('is over with the next answer; one that says "not now" is another trouble', () => {
    reportSilence()
    reportAnswer(false)
    expect(getConnection().trouble).toBe('unavailable')
    reportAnswer(true)
    expect(getConnection().trouble).toBeUndefined()
  })
})
