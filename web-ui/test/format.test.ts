import type { TFunction } from 'i18next'
import { describe, expect, it } from 'vitest'
import { humanDuration, parseDuration, roughDuration } from '../src/lib/duration'
import { unitOffset } from '../src/lib/misc'
import { formatInstant, formatWithZone, instantToWall, wallToInstant, zoneOffset } from '../src/lib/time'
import { errorLine } from '../src/lib/why'

// The texts of the units, without the machinery of i18next.
const t = ((key: string, { n }: { n: number }) => `${n} ${key.slice('unit.'.length)}`) as unknown as TFunction

describe('errorLine', () => {
  it.each([
    [undefined, ''],
    ['\n  \n', ''],
    ['\n no route to db\r\nat main.go:7', 'no route to db'],
  ])('of %j is %j', (text, line) => expect(errorLine(text, t)).toBe(line))
})

describe('parseDuration', () => {
  it.each([
    ['0s', 0],
    ['0', 0],
    ['250ms', 250],
    ['1.5s', 1_500],
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['-2s', -2_000],
  ])('%s is %d ms', (text, ms) => expect(parseDuration(text)).toBe(ms))

  it.each(['', '5', 'm', '5 m', '1d', '5m x', '1h,30m'])('refuses %j', (text) => expect(parseDuration(text)).toBeNaN())
})

describe('roughDuration', () => {
  it.each([
    [0, '0 ms'],
    [59_999, '59 s'],
    [149_000, '2 m'],
    [7_199_000, '1 h'],
    [8 * 86_400_000, '8 d'],
  ])('%d ms is %s', (ms, text) => expect(roughDuration(ms, t)).toBe(text))
})

describe('humanDuration', () => {
  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [1_000, '1 s'],
    [9_949, '9.9 s'],
    [12_000, '12 s'],
    [59_999, '59 s'],
    [60_000, '1 m'],
    [72_000, '1 m 12 s'],
    [3_600_000, '1 h'],
    [7_500_000, '2 h 5 m'],
    [86_400_000 * 3 + 3_600_000 * 4, '3 d 4 h'],
    [-1_500, '-1.5 s'],
  ])('%d ms is %s', (ms, text) => expect(humanDuration(ms, t)).toBe(text))
})

describe('instants', () => {
  const at = '2026-11-21T18:00:00.250Z'

  it('shows one instant in any zone, with the name of the zone', () => {
    expect(formatInstant(at, 'Asia/Shanghai')).toBe('2026-11-22 02:00:00')
    expect(formatInstant(at, 'UTC', true)).toBe('2026-11-21 18:00:00.250')
    expect(formatWithZone(at, 'America/New_York')).toBe('2026-11-21 13:00:00 America/New_York')
  })

  it('knows offsets, also across a change of the clock', () => {
    expect(zoneOffset(at, 'UTC')).toBe('+00:00')
    expect(zoneOffset(at, 'Asia/Kolkata')).toBe('+05:30')
    expect(zoneOffset('2026-07-01T00:00:00Z', 'America/New_York')).toBe('-04:00')
    expect(zoneOffset('2026-12-01T00:00:00Z', 'America/New_York')).toBe('-05:00')
  })

  it('does not break on a zone that the browser does not know', () => {
    expect(formatInstant(at, 'Mars/Olympus')).toBe('2026-11-21 18:00:00')
  })

  it.each([
    ['2026-11-22T02:00:00', 'Asia/Shanghai', '2026-11-21T18:00:00.000Z'],
    ['2026-07-01T00:00:00', 'America/New_York', '2026-07-01T04:00:00.000Z'],
    // 02:30 does not exist: 30 minutes after the jump.
    ['2026-03-08T02:30:00', 'America/New_York', '2026-03-08T07:30:00.000Z'],
    // 01:30 comes twice: the first.
    ['2026-11-01T01:30:00', 'America/New_York', '2026-11-01T05:30:00.000Z'],
  ])('%s in %s is %s', (wall, zone, instant) => expect(wallToInstant(wall, zone)).toBe(instant))

  it('goes to the wall clock and back', () => {
    for (const zone of ['UTC', 'Asia/Shanghai', 'America/New_York', 'Asia/Kolkata', 'Pacific/Apia']) {
      const instant = '2026-05-17T13:45:10.000Z'
      expect(wallToInstant(instantToWall(instant, zone), zone)).toBe(instant)
    }
  })
})

describe('unitOffset', () => {
  it('turns bytes into characters of the input', () => {
    expect(unitOffset('0 0 61', 4)).toBe(4)
    // A pasted full-width digit has three bytes and is one character.
    expect(unitOffset('０ 0 61', 4)).toBe(2)
    expect(unitOffset('abc', 99)).toBe(3)
  })
})
