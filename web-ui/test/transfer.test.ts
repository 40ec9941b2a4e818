import { beforeEach, describe, expect, it } from 'vitest'
import { askIfChanged, forgetAnswers, noteCost, notePoll, paceOf, wholeAnswer } from '../src/api/transfer'

const JOBS = 'http://localhost/api/v1/jobs'
const ask = (url = JOBS) => new Request(url)
const answer = (text: string, etag: string | null, init: ResponseInit = {}) =>
  new Response(text, { status: 200, ...init, headers: { 'Content-Type': 'application/json', ...(etag ? { ETag: etag } : {}), ...init.headers } })

beforeEach(() => forgetAnswers())

describe('answers that have not changed', () => {
  it('are asked for by their tag, and given again on 304', async () => {
    expect(askIfChanged(ask(), 'anna ').headers.get('If-None-Match')).toBeNull()
    await wholeAnswer(ask(), 'anna ', answer('{"items":[1]}', 'W/"a"'))
    expect(askIfChanged(ask(), 'anna ').headers.get('If-None-Match')).toBe('W/"a"')
    const again = await wholeAnswer(ask(), 'anna ', new Response(null, { status: 304, headers: { ETag: 'W/"a"' } }))
    expect(again.status).toBe(200)
    expect(await again.json()).toEqual({ items: [1] })
  })

  it('are of one reader alone, and forgotten', async () => {
    await wholeAnswer(ask(), 'anna ', answer('{}', 'W/"a"'))
    expect(askIfChanged(ask(), 'bert ').headers.has('If-None-Match')).toBe(false)
    forgetAnswers()
    expect(askIfChanged(ask(), 'anna ').headers.has('If-None-Match')).toBe(false)
  })

  it('are not those whose tag is a revision to edit, of other methods, or of errors', async () => {
    await wholeAnswer(ask(), '', answer('{}', '"7"'))
    await wholeAnswer(new Request(JOBS, { method: 'POST' }), '', answer('{}', 'W/"a"'))
    await wholeAnswer(ask(), '', answer('{}', 'W/"a"', { status: 500 }))
    expect(askIfChanged(ask(), '').headers.has('If-None-Match')).toBe(false)
  })

  it('are kept up to a number, those that were used last', async () => {
    for (let i = 0; i < 41; i++) await wholeAnswer(ask(`${JOBS}?i=${i}`), '', answer('{}', 'W/"a"'))
    expect(askIfChanged(ask(`${JOBS}?i=0`), '').headers.has('If-None-Match')).toBe(false)
    expect(askIfChanged(ask(`${JOBS}?i=1`), '').headers.has('If-None-Match')).toBe(true)
  })
})

describe('the pace', () => {
  const poll = async (key: string, bytes: number, unchanged = false) => {
    if (unchanged) await wholeAnswer(ask(JOBS + key), '', answer('{}', 'W/"a"'))
    const res = unchanged
      ? await wholeAnswer(ask(JOBS + key), '', new Response(null, { status: 304 }))
      : answer('{}', null, { headers: { 'Content-Length': String(bytes) } })
    const data = {}
    noteCost(data, res)
    notePoll(key, data)
  }

  it('is the one that is wanted for what is small', async () => {
    expect(paceOf('new', 5_000)).toBe(5_000)
    await poll('small', 1_000)
    expect(paceOf('small', 5_000)).toBe(5_000)
  })

  it('gives 60 kB a minute to one query, and asks every 30 s at least', async () => {
    await poll('large', 10_000)
    expect(paceOf('large', 5_000)).toBe(10_000)
    await poll('large', 500_000)
    expect(paceOf('large', 5_000)).toBe(30_000)
  })

  it('slows down while nothing changes, and is quick again with the first news', async () => {
    await poll('quiet', 1_000)
    for (let i = 0; i < 6; i++) await poll('quiet', 0, true)
    expect(paceOf('quiet', 5_000)).toBe(10_000)
    for (let i = 0; i < 6; i++) await poll('quiet', 0, true)
    expect(paceOf('quiet', 5_000)).toBe(15_000)
    await poll('quiet', 1_000)
    expect(paceOf('quiet', 5_000)).toBe(5_000)
  })
})
