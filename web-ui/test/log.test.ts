import { describe, expect, it } from 'vitest'
import { ApiError } from '../src/api/problem'
import type { LogLine, LogPage } from '../src/api/types'
import { findLine, LOG_END, LogStore, type Fetch } from '../src/areas/runs/log/logStore'
import { attrsText, levelRank, matchesText, piecesOf } from '../src/areas/runs/log/logText'

const line = (n: number, more: Partial<LogLine> = {}): LogLine => ({ n, at: '2026-11-21T12:00:00.000Z', attempt: 1, level: 'INFO', msg: `line ${n}`, ...more })

/** A log on a server: grows when told, answers like the API, long polls included. */
class FakeLog {
  lines: LogLine[] = []
  complete = false
  asked: string[] = []
  failNext: unknown
  /** At most so many lines are looked at in one request. */
  scan = Infinity
  private wake: (() => void)[] = []

  grow(count: number, complete = false): void {
    for (let i = 0; i < count; i++) this.lines.push(line(this.lines.length + 1))
    this.complete = complete
    for (const one of this.wake.splice(0)) one()
  }

  readonly fetch: Fetch = async (query, signal) => {
    const { after = 0, before, limit, wait } = query
    this.asked.push(before === undefined ? `${after}+${limit}${wait ? ' wait' : ''}` : `${before === LOG_END ? 'end' : before}-${limit}`)
    if (this.failNext) {
      const err = this.failNext
      this.failNext = undefined
      throw err
    }
    if (before !== undefined) return this.back(query, before)
    if (wait && this.lines.length <= after && !this.complete) {
      await new Promise<void>((resolve, reject) => {
        this.wake.push(resolve)
        signal.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')))
      })
    }
    const seen = this.lines.slice(after, after + this.scan)
    const lines = seen.filter((one) => matches(one, query)).slice(0, limit)
    const next = lines.length === limit ? lines[limit - 1]!.n : after + seen.length
    const complete = this.complete && next >= this.lines.length
    return { lines, lastLine: this.lines.length, complete, truncated: false, counts: null, next, prev: 0 } satisfies LogPage
  }

  private back(query: Parameters<Fetch>[0], before: number): LogPage {
    const end = Math.min(before - 1, this.lines.length)
    const start = Math.max(0, end - this.scan)
    const lines = this.lines.slice(start, end).filter((one) => matches(one, query)).slice(-query.limit)
    const prev = lines.length === query.limit ? lines[0]!.n : start + 1
    return { lines, lastLine: this.lines.length, complete: this.complete, truncated: false, counts: null, next: 0, prev: prev > 1 ? prev : 0 }
  }
}

const matches = (one: LogLine, query: Parameters<Fetch>[0]) =>
  (query.level === undefined || levelRank(one.level) >= levelRank(query.level)) && matchesText(one, (query.q ?? '').toLowerCase())

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
const never = () => new AbortController().signal
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

describe('LogStore', () => {
  it('loads a finished log once and stops asking', async () => {
    const server = new FakeLog()
    server.grow(30, true)
    const store = new LogStore(server.fetch)
    await store.run(never())
    expect(numbers(store)).toEqual(range(1, 30))
    expect(store.get()).toMatchObject({ loaded: true, complete: true, atEnd: true, lastLine: 30, first: 1 })
    expect(server.asked).toEqual(['end-2000'])
  })

  it('follows a growing log to its end without gap or double', async () => {
    const server = new FakeLog()
    server.grow(3)
    const store = new LogStore(server.fetch)
    const done = store.run(never())
    await until(store, () => store.get().lines.length === 3)
    server.grow(2)
    await until(store, () => store.get().lines.length === 5)
    server.grow(1, true)
    await done
    expect(numbers(store)).toEqual(range(1, 6))
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
    await store.run(never())
    expect(numbers(store)).toEqual(range(1, 8))
  })

  it('tells that it is interrupted, asks again, and recovers', async () => {
    const server = new FakeLog()
    server.grow(2)
    server.failNext = new ApiError({ status: 0, code: 'network' })
    const store = new LogStore(server.fetch)
    const done = store.run(never())
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
    await store.run(never())
    expect(store.get().error).toBeInstanceOf(ApiError)
  })

  it('loads a short log whole', async () => {
    const server = new FakeLog()
    server.grow(4_500, true)
    const store = new LogStore(server.fetch)
    await store.run(never())
    expect(numbers(store)).toEqual(range(1, 4_500))
  })

  it('opens a long log near its end and loads earlier lines on demand', async () => {
    const server = new FakeLog()
    server.grow(200_000, true)
    const store = new LogStore(server.fetch)
    await store.run(never())
    expect(server.asked).toEqual(['end-2000'])
    expect(numbers(store)).toEqual(range(198_001, 200_000))
    expect(await store.loadEarlier(never())).toBe(2_000)
    expect(store.get().first).toBe(196_001)
    expect(numbers(store)).toEqual(range(196_001, 200_000))
  })

  it('opens a long log around the linked line, and grows to its end on demand', async () => {
    const server = new FakeLog()
    server.grow(10_000)
    const store = new LogStore(server.fetch, {}, 8_200)
    const leave = new AbortController()
    const running = store.run(leave.signal)
    await until(store, () => numbers(store).at(-1) === 9_199)
    expect(numbers(store)).toEqual(range(7_700, 9_199))
    expect(store.get()).toMatchObject({ loaded: true, atEnd: false, complete: false, first: 7_700 })
    await store.loadLater(never())
    expect(store.get().atEnd).toBe(true)
    server.grow(5) // now it follows
    await until(store, () => numbers(store).at(-1) === 10_005)
    expect(numbers(store)).toEqual(range(7_700, 10_005))
    server.grow(1, true)
    await running
    expect(store.get().complete).toBe(true)
  })

  it('knows that a log has ended when only its middle is held', async () => {
    const server = new FakeLog()
    server.grow(300_000, true)
    const store = new LogStore(server.fetch, {}, 100)
    const leave = new AbortController()
    const running = store.run(leave.signal)
    await until(store, () => store.get().lines.length > 500)
    expect(numbers(store)).toEqual(range(1, 1_099))
    expect(store.get()).toMatchObject({ complete: true, atEnd: false, lastLine: 300_000 })
    leave.abort()
    await running
  })

  it.each([29_999, 30_000, 99_999])('opens at the end for line %d of 30,000', async (target) => {
    const server = new FakeLog()
    server.grow(30_000, true)
    const store = new LogStore(server.fetch, {}, target)
    await store.run(never())
    expect(numbers(store).at(-1)).toBe(30_000)
    expect(numbers(store)).toContain(Math.min(target, 30_000))
  })

  it('looks for matching lines in all of a long log, a part at a time', async () => {
    const server = new FakeLog()
    server.grow(100_000)
    server.scan = 20_000
    const store = new LogStore(server.fetch, { q: 'LINE 777' })
    const leave = new AbortController()
    const running = store.run(leave.signal)
    await until(store, () => store.get().first === 1 && store.get().lines.length > 100)
    expect(store.get().lines).toHaveLength(1 + 10 + 100)
    expect(store.get()).toMatchObject({ first: 1, atEnd: true, lastLine: 100_000 })
    server.lines.push(line(100_001, { msg: 'line 777 again' }))
    server.grow(0, true)
    await running
    expect(numbers(store).at(-1)).toBe(100_001)
  })

  it('asks for lines of a level', async () => {
    const server = new FakeLog()
    server.grow(10, true)
    server.lines[4] = line(5, { level: 'ERROR' })
    const store = new LogStore(server.fetch, { level: 'WARN' })
    await store.run(never())
    expect(numbers(store)).toEqual([5])
    expect(store.get()).toMatchObject({ atEnd: true, complete: true, lastLine: 10 })
  })
})

describe('findLine', () => {
  const server = new FakeLog()
  server.grow(1_000)
  server.scan = 300
  it.each([
    [0, true, 'line 9', 9],
    [9, true, 'line 9', 90],
    [950, true, 'line 12', undefined],
    [LOG_END, false, 'line 12', 129],
    [120, false, 'line 12', 12],
    [12, false, 'line 12', undefined],
  ])('from %d, forward %s, %s: %s', async (from, forward, q, want) => {
    expect(await findLine(server.fetch, from, forward, { q }, never())).toBe(want)
  })
})

describe('log text', () => {
  it('shows markup and control characters as text', () => {
    expect(piecesOf('<script>x</script>\u0000\r', '')).toEqual([{ text: '<script>x</script>\u2400\u240d' }])
  })

  it('shows what would turn or hide text, and what a terminal would obey', () => {
    const text = (message: string) => piecesOf(message, '').map((one) => one.text).join('')
    expect(text('pay \u202egro.live\u2066')).toBe('pay \\u202egro.live\\u2066')
    expect(text('a\u009b31mb\u2028c')).toBe('a\\u009b31mb\\u2028c')
    expect(text('\u001b]8;;javascript:alert(1)\u0007click')).toContain('\u241b]8;;javascript')
  })

  it('shows the trace beside the attributes', () => {
    expect(attrsText(line(1, { traceId: 'abc' }))).toBe('trace=abc')
    expect(attrsText(line(1, { traceId: 'abc', attrs: { n: 1 } }))).toBe('n=1 trace=abc')
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
