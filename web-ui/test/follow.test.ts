import { describe, expect, it } from 'vitest'
import { follow, isAtEnd, lineOfHash, type FollowEvent, type FollowState } from '../src/areas/runs/log/logFollow'

const start: FollowState = { following: true, unseen: 0 }
const run = (...events: FollowEvent[]) => events.reduce(follow, start)

describe('follow', () => {
  it('stays with the end while lines come', () => {
    expect(run({ type: 'lines', added: 500 })).toEqual({ following: true, unseen: 0 })
  })

  it('stops when the person scrolls up, and counts what comes then', () => {
    expect(run({ type: 'scroll', atEnd: false, byUser: true }, { type: 'lines', added: 100 }, { type: 'lines', added: 28 })).toEqual({ following: false, unseen: 128 })
  })

  it('does not stop by its own scrolling', () => {
    expect(run({ type: 'scroll', atEnd: false, byUser: false })).toEqual({ following: true, unseen: 0 })
  })

  it('does not count anew when the person scrolls further', () => {
    const up: FollowEvent = { type: 'scroll', atEnd: false, byUser: true }
    expect(run(up, { type: 'lines', added: 3 }, up, up)).toEqual({ following: false, unseen: 3 })
  })

  it.each<FollowEvent>([{ type: 'jump' }, { type: 'toggle' }, { type: 'scroll', atEnd: true, byUser: true }])('resumes by $type', (event) => {
    expect(run({ type: 'toggle' }, { type: 'lines', added: 7 }, event)).toEqual({ following: true, unseen: 0 })
  })

  it('changes nothing, by identity, when nothing happened', () => {
    expect(follow(start, { type: 'lines', added: 3 })).toBe(start)
    expect(follow(start, { type: 'scroll', atEnd: true, byUser: true })).toBe(start)
  })
})

describe('isAtEnd', () => {
  it('allows for part of a line', () => {
    expect(isAtEnd({ scrollTop: 960, scrollHeight: 1_500, clientHeight: 520 })).toBe(true)
    expect(isAtEnd({ scrollTop: 900, scrollHeight: 1_500, clientHeight: 520 })).toBe(false)
  })
})

describe('lineOfHash', () => {
  it.each([
    ['#L120', 120],
    ['#L', undefined],
    ['#L12x', undefined],
    ['', undefined],
    ['#l5', undefined],
  ])('%s', (hash, line) => expect(lineOfHash(hash)).toBe(line))
})
