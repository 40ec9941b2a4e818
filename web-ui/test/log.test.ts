import { describe, expect, it } from 'vitest'
import { ApiError } from '../src/api/problem'
import type { LogLine, LogPage } from '../src/api/types'
import { LogStore, type Fetch } from '../src/lib/logStore'
import { attrsText, levelRank, matchesText, piecesOf } from '../src/lib/logText'

const line = (n: number, more: Partial<LogLine> = {}): LogLine => ({ n, at: '2026-11-21T12:00:00.000Z', attempt: 1, level: 'INFO', msg: `line ${n}`, ...more })

/** A log on a server: grows when told, answers like the API, long polls included. */
class FakeLog {
  lines: LogLine[] = []
  complete = false
  asked: string[] = []
  failNext: unknown
  private wake: (() => void)[] = []

  grow(count: number, complete = false): void {
    for (let i = 0; i < count; i++) this.lines.push(line(this.lines.length + 1))
    this.complete = complete
    for (const one of this.wake.splice(0)) one()
  }

  readonly fetch: Fetch = async ({ after, limit, wait }, signal) => {
    this.asked.push(`${after}+${limit}${wait ? ' wait' : ''}`)
    if (this.failNext) {
      const err = this.failNext
      this.failNext = undefined
      throw err
    }
    if (wait && this.lines.length <= after && !this.complete) {
      await new Promise<void>((resolve, reject) => {
        this.wake.push(resolve)
        signal.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')))
      })
    }
    return { lines: this.lines.slice(after, after + limit), lastLine: this.lines.length, complete: this.complete, truncated: false, next: Math.min(this.lines.length, after + limit) } satisfies LogPage
  }
}

const until = async (store: LogStore, good: () => boolean) => {
  if (good()) return
  await new Promise<void>((resolve) => {
    const stop = store.subscribe(() => {
      if (!good()) return
      stop()
      resolve()
    })
  })
}
const numbers = (store: LogStore) => store.get().lines.map((one) => one.n)

describe('LogStore', () => {
  it('loads a finished log once and stops asking', async () => {
    const server = new FakeLog()
    server.grow(30, true)
    const store = new LogStore(server.fetch)
    await store.run(new AbortController().signal)
    expect(numbers(store)).toEqual(server.lines.map((one) => one.n))
    expect(store.get()).toMatchObject({ loaded: true, complete: true, lastLine: 30, first: 1 })
    expect(server.asked).toEqual(['0+1000'])
  })

  it('follows a growing log to its end without gap or double', async () => {
    const server = new FakeLog()
    server.grow(3)
    const store = new LogStore(server.fetch)
    const done = store.run(new AbortController().signal)
    await until(store, () => store.get().lines.length === 3)
    server.grow(2)
    await until(store, () => store.get().lines.length === 5)
    server.grow(1, true)
    await done
    expect(numbers(store)).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('continues after the last line when it was interrupted', async () => {
    const server = new FakeLog()
    server.grow(4)
    const store = new LogStore(server.fetch)
    const first = new AbortController()
    const running = store.run(first.signal)
    await until(store, () => store.get().lines.length === 4)
    first.abort()
    await running
    server.grow(4, true)
    await store.run(new AbortController().signal)
    expect(numbers(store)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('tells that it is interrupted, asks again, and recovers', async () => {
    const server = new FakeLog()
    server.grow(2)
    server.failNext = new ApiError({ status: 0, code: 'network' })
    const store = new LogStore(server.fetch)
    const done = store.run(new AbortController().signal)
    await until(store, () => store.get().interrupted)
    server.grow(1, true)
    await done
    expect(store.get()).toMatchObject({ interrupted: false, complete: true })
    expect(numbers(store)).toEqual([1, 2, 3])
  })

  it('gives up on a refusal', async () => {
    const server = new FakeLog()
    server.failNext = new ApiError({ status: 404, code: 'not_found' })
    const store = new LogStore(server.fetch)
    await store.run(new AbortController().signal)
    expect(store.get().error).toBeInstanceOf(ApiError)
  })

  it('opens a long log near its end and loads earlier lines on demand', async () => {
    const server = new FakeLog()
    server.grow(30_000, true)
    const store = new LogStore(server.fetch)
    await store.run(new AbortController().signal)
    expect(store.get().first).toBe(28_001)
    expect(numbers(store).at(-1)).toBe(30_000)
    expect(await store.loadEarlier(new AbortController().signal)).toBe(2_000)
    expect(store.get().first).toBe(26_001)
    expect(numbers(store)).toEqual(Array.from({ length: 4_000 }, (_, i) => 26_001 + i))
  })

  it.each([100, 12_000, 29_999])('opens a long log at the linked line %d', async (target) => {
    const server = new FakeLog()
    server.grow(30_000, true)
    const store = new LogStore(server.fetch, target)
    await store.run(new AbortController().signal)
    expect(numbers(store)).toContain(target)
    expect(numbers(store).at(-1)).toBe(30_000)
  })

  it('keeps the linked line when the log is longer than a page can hold', async () => {
    const server = new FakeLog()
    server.grow(300_000, true)
    const store = new LogStore(server.fetch, 100)
    await store.run(new AbortController().signal)
    expect(numbers(store)[99]).toBe(100)
    expect(store.get().lines.length).toBeLessThan(300_000)
  })
})

describe('log text', () => {
  it('shows markup and control characters as text', () => {
    expect(piecesOf('<script>x</script>\u0000\r', '')).toEqual([{ text: '<script>x</script>\u2400\u240d' }])
  })

  it('turns terminal colours into ours', () => {
    const pieces = piecesOf('\u001b[31mbad\u001b[0m good', '')
    expect(pieces.map((one) => one.text).join('')).toBe('bad good')
    expect(pieces[0]).toMatchObject({ text: 'bad', colour: 'var(--failed)' })
    expect(pieces[1]?.colour).toBeUndefined()
  })

  it('marks every match, whatever its case', () => {
    expect(piecesOf('Pay the PAY desk', 'pay').filter((one) => one.match).map((one) => one.text)).toEqual(['Pay', 'PAY'])
  })

  it('searches message and attributes, but not terminal codes', () => {
    const one = line(1, { msg: '\u001b[31mgateway\u001b[0m failed', attrs: { order: 4711, why: 'no route' } })
    expect(matchesText(one, 'gateway failed')).toBe(true)
    expect(matchesText(one, '4711')).toBe(true)
    expect(matchesText(one, '31m')).toBe(false)
    expect(attrsText(one)).toBe('order=4711 why="no route"')
  })

  it('orders levels and takes an unknown one for INFO', () => {
    expect(['debug', 'TRACE9', 'Info', 'WARN', 'error'].map(levelRank)).toEqual([0, 1, 1, 2, 3])
  })
})
