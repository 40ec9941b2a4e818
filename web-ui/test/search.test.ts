import { describe, expect, it } from 'vitest'
import { isFiltered, jobsSearch, parseSearch, runsQuery, runsSearch, stringifySearch } from '../src/lib/search'

describe('addresses', () => {
  it('keeps filters readable and lossless', () => {
    const search = runsSearch(parseSearch('?jobId=7301000000000000017&state=failed,timed_out&cause=manual&q=%E6%97%A5 report'))
    const text = stringifySearch(search)
    expect(text).toBe('?jobId=7301000000000000017&q=%E6%97%A5+report&state=failed,timed_out&cause=manual')
    expect(runsSearch(parseSearch(text))).toEqual(search)
  })

  it('keeps an id of 64 bit exact', () => {
    expect(runsSearch(parseSearch('?jobId=9223372036854775807')).jobId).toBe('9223372036854775807')
  })

  it('puts states in one order, each once, so that equal filters are equal links', () => {
    expect(runsSearch({ state: 'timed_out,failed,failed' }).state).toBe(runsSearch({ state: 'failed,timed_out' }).state)
  })

  it('drops what it does not know', () => {
    expect(runsSearch({ state: 'exploded', cause: 'magic', range: '5y', jobId: "1' or 1", from: 'soon', junk: 'x' })).toEqual({})
    expect(jobsSearch({ state: 'asleep', sort: 'luck', q: '   ' })).toEqual({})
  })

  it('prefers a relative range over fixed ends', () => {
    expect(runsSearch({ range: '24h', from: '2026-11-20T00:00:00Z' })).toEqual({ range: '24h' })
    expect(runsSearch({ from: '2026-11-20T08:00:00+08:00' })).toEqual({ from: '2026-11-20T00:00:00.000Z' })
  })
})

describe('runsQuery', () => {
  const now = Date.parse('2026-11-21T12:00:07.400Z')

  it('asks the same question for ten seconds', () => {
    expect(runsQuery({ range: '1h' }, now)).toEqual({ from: '2026-11-21T11:00:00.000Z' })
    expect(runsQuery({ range: '1h' }, now + 2_000)).toEqual(runsQuery({ range: '1h' }, now))
    expect(runsQuery({ range: '1h' }, now + 10_000)).not.toEqual(runsQuery({ range: '1h' }, now))
  })

  it('passes the other filters on', () => {
    expect(runsQuery({ state: 'failed', range: '7d' }, now)).toEqual({ state: 'failed', from: '2026-11-14T12:00:00.000Z' })
  })
})

describe('isFiltered', () => {
  it('does not count the page and the order', () => {
    expect(isFiltered({ cursor: 'x', sort: 'name' })).toBe(false)
    expect(isFiltered({ cursor: 'x', q: 'pay' })).toBe(true)
  })
})
