import { describe, expect, it } from 'vitest'
import type { Cluster, Exclusion, ExplanationStep, Limit } from '../src/api/types'
import { diffCalendars, formatDays, formatWindows, parseDays, parseWindows, rangesOf } from '../src/areas/calendars/calendar'
import { calendarFieldsOf, calendarSpecOf, calendarWriteOf, rezone } from '../src/areas/calendars/calendarForm'
import { holdersOf, summaryOf, termsOf, zonesText } from '../src/areas/cluster/partitions'
import { stepRows } from '../src/areas/runs/explain'
import { fieldPath, fieldsOf, newJob, scheduleOf } from '../src/areas/jobs/form/jobForm'
import { limitRows } from '../src/areas/executors/limitWords'
import { excludedBy } from '../src/areas/calendars/calendar'
import { onOurClock } from '../src/lib/why'

const t = ((key: string, values?: object) => (values ? `${key} ${JSON.stringify(values)}` : key)) as never

describe('days of a calendar as text', () => {
  it('are dates and ranges with names, each date once', () => {
    const { items, fault } = parseDays('2026-10-01..2026-10-03 国庆节\n\n  2026-10-03 again\n2026-12-25 Christmas Day\n2027-01-01')
    expect(fault).toBeUndefined()
    expect(items).toEqual([
      { date: '2026-10-01', name: '国庆节' },
      { date: '2026-10-02', name: '国庆节' },
      { date: '2026-10-03', name: '国庆节' },
      { date: '2026-12-25', name: 'Christmas Day' },
      { date: '2027-01-01' },
    ])
  })

  it.each([
    ['tomorrow', 'bad', 1],
    ['2026-10-01\n2026-10-1 x', 'bad', 2],
    ['2026-02-29', 'date', 1],
    ['2026-10-03..2026-10-01', 'order', 1],
    ['2026-01-01..2028-01-01', 'long', 1],
    ['2026-10-01x', 'bad', 1],
  ])('%j is refused with its line', (text, kind, line) => expect(parseDays(text).fault).toMatchObject({ kind, line }))

  it('come back as they were', () => {
    const text = '2026-10-01..2026-10-03 National Day\n2026-10-04\n2026-12-31..2027-01-01 New Year'
    expect(formatDays(parseDays(text).items)).toBe(text)
    expect(rangesOf(parseDays(text).items).map((one) => one.days)).toEqual([3, 1, 2])
  })
})

describe('windows of a calendar as text', () => {
  const sale = { from: '2026-11-10T14:00:00.000Z', to: '2026-11-10T22:00:30.000Z', name: 'Sale of the year' }

  it('are on the clocks of their zone', () => {
    const text = '2026-11-10 22:00 .. 2026-11-11 06:00:30 Sale of the year'
    expect(parseWindows(text, 'Asia/Shanghai').items).toEqual([sale])
    expect(formatWindows([sale], 'Asia/Shanghai')).toBe(text)
    expect(formatWindows([sale], 'UTC')).toBe('2026-11-10 14:00 .. 2026-11-10 22:00:30 Sale of the year')
  })

  it.each([
    ['2026-11-10 22:00', 'bad'],
    ['2026-11-31 22:00 .. 2026-12-01 06:00', 'date'],
    ['2026-11-10 25:00 .. 2026-12-01 06:00', 'date'],
    ['2026-11-10 22:00 .. 2026-11-10 22:00', 'order'],
  ])('%j is refused', (text, kind) => expect(parseWindows(text, 'UTC').fault).toMatchObject({ kind, line: 1 }))
})

describe('the calendar form', () => {
  const spec = {
    zone: 'Asia/Shanghai',
    weekend: ['SAT', 'SUN'] as const,
    holidays: [{ date: '2026-10-01', name: '国庆节' }],
    makeUpDays: [{ date: '2026-09-27' }],
    blackouts: [{ from: '2026-11-10T14:00:00.000Z', to: '2026-11-10T22:00:00.000Z', name: 'Sale' }],
  }

  const stored = { name: 'cn', spec: { ...spec, weekend: [...spec.weekend] } }

  it('gives back what it was filled with', () => {
    expect(calendarWriteOf(calendarFieldsOf(stored))).toEqual({ name: 'cn', spec })
  })

  it('keeps windows the same instants when the zone changes', () => {
    const fields = calendarFieldsOf(stored)
    const moved = { ...fields, zone: 'UTC' as string | undefined, ...rezone({ ...fields, zone: 'UTC' }) }
    expect(moved.blackouts).toBe('2026-11-10 14:00 .. 2026-11-10 22:00 Sale')
    expect(calendarSpecOf(moved).blackouts).toEqual(spec.blackouts)
    expect(rezone({ ...fields, zone: 'UTC', blackouts: 'what?' }).blackouts).toBe('what?')
  })

  it('takes an unsaid weekend for the usual one', () => {
    expect(diffCalendars({ name: 'cn' }, { name: 'cn', weekend: ['SAT', 'SUN'] }, 'UTC')).toEqual([])
  })

  it('says what a version changed', () => {
    const newer = { ...spec, name: 'cn', weekend: ['SUN' as const], description: 'new', holidays: [{ name: '国庆节', date: '2026-10-01' }, { date: '2026-10-02' }], makeUpDays: [] }
    expect(diffCalendars({ ...stored.spec, name: 'cn' }, newer, 'UTC')).toEqual([
      { part: 'description', kind: 'changed', before: '', after: 'new' },
      { part: 'weekend', kind: 'changed', before: 'SAT SUN', after: 'SUN' },
      { part: 'holidays', kind: 'added', before: '', after: '2026-10-02' },
      { part: 'makeUpDays', kind: 'removed', before: '2026-09-27', after: '' },
    ])
  })
})

describe('calendars of a job', () => {
  const fields = fieldsOf({ ...newJob('1', 'x'), schedule: { kind: 'cron', expr: '0 2 * * *', zone: 'UTC', calendars: [{ id: '7' }], calendarDays: 'workdays' } }).schedule

  it('are ids with the rule for days', () => {
    expect(scheduleOf(fields)).toMatchObject({ calendars: [{ id: '7' }], calendarDays: 'workdays' })
    expect(scheduleOf({ ...fields, calendarIds: [] })).not.toHaveProperty('calendarDays')
    expect(scheduleOf({ ...fields, kind: 'none' })).toEqual({ kind: 'none', zone: 'UTC' })
  })

  it('take the complaints about them', () => {
    expect(fieldPath({ location: 'body.schedule.calendars[0]', message: 'x' })).toEqual(['schedule', 'calendarIds'])
  })
})

describe('an explanation', () => {
  const at = (ms: number) => new Date(Date.parse('2026-11-21T12:00:00Z') + ms).toISOString()
  const step = (ms: number, code: string): ExplanationStep => ({ at: at(ms), code, text: { en: code, zh: code } })

  it('has the delay before each step, and marks the long ones that nobody meant', () => {
    const steps = [step(-3000, 'claimed'), step(0, 'planned'), step(10, 'delayed:waiting_for_slot'), step(5010, 'offered'), step(5020, 'started'), step(9000, 'finished'), step(19_000, 'offered')]
    expect(stepRows(steps, at(0)).map((row) => [row.kind, row.sinceFire, row.sinceLast, row.slow])).toEqual([
      ['claimed', -3000, null, false],
      ['planned', 0, 3000, false],
      ['delayed', 10, 10, false],
      ['offered', 5010, 5000, true],
      ['started', 5020, 10, false],
      ['finished', 9000, 3980, false],
      ['offered', 19_000, 10_000, false],
    ])
  })

  it('does not call long what a run waits that is offered ahead of its fire time', () => {
    const steps = [step(-2690, 'claimed'), step(-44, 'offered'), step(0, 'planned'), step(2, 'granted'), step(1500, 'started')]
    expect(stepRows(steps, at(0)).map((row) => row.slow)).toEqual([false, false, false, false, true])
    expect(stepRows([step(-2690, 'claimed'), step(999, 'offered')], at(0)).map((row) => row.slow)).toEqual([false, false])
    expect(stepRows([step(-2690, 'claimed'), step(1000, 'offered')], at(0)).map((row) => row.slow)).toEqual([false, true])
  })

  it('is told on our clock', () => {
    expect(onOurClock('It waits until 2026-11-21T12:00:00.000Z, or 2026-11-21T12:00:00.250Z.', 'Asia/Shanghai')).toBe(
      'It waits until 2026-11-21 20:00:00 Asia/Shanghai, or 2026-11-21 20:00:00.250 Asia/Shanghai.',
    )
  })

  it.each<[Partial<Exclusion>, string]>([
    [{ kind: 'weekend', date: '2026-11-21' }, 'calendars.weekendDay'],
    [{ kind: 'holiday', name: '国庆节' }, '国庆节'],
    [{ kind: 'holiday' }, 'calendars.holiday'],
    [{ kind: 'blackout', until: at(0), name: 'Sale' }, 'Sale (calendars.blackout {"until":"2026-11-21 20:00"})'],
  ])('of what a calendar takes out: %j', (exclusion, text) => {
    expect(excludedBy({ calendar: { id: '1', name: 'cn', version: 1 }, ...exclusion } as Exclusion, 'Asia/Shanghai', t)).toBe(text)
  })
})

describe('limits', () => {
  it('list the tenant first, then every executor, with a limit or without', () => {
    const limit = (kind: Limit['kind'], id: string, name: string, maxRunning: number): Limit => ({ kind, subject: { id, name }, maxRunning, running: 1, waiting: 2 })
    const rows = limitRows([limit('executor', '2', 'pay', 5), limit('executor', '1', 'beyond', 3)], { id: '1', name: 'acme' }, [
      { id: '3', name: 'shop' },
      { id: '2', name: 'pay' },
    ])
    expect(rows.map((one) => `${one.kind} ${one.subject.name} ${one.maxRunning}`)).toEqual(['tenant acme 0', 'executor beyond 3', 'executor pay 5', 'executor shop 0'])
  })
})

describe('the cluster', () => {
  const partition = (id: number, bootId: string, state: string, lag = 0) => ({ id, bootId, state, term: String(id + 1), planningLagMs: lag, dueLagMs: 0 })
  const cluster = {
    nodes: [
      { bootId: 'a', clockSkewMs: -30 },
      { bootId: 'b', clockSkewMs: 4 },
    ],
    partitions: [partition(0, 'a', 'held'), partition(1, 'b', 'held', 1500), partition(2, 'a', 'held'), partition(3, 'b', 'expired'), partition(4, 'gone', 'held')],
  } as unknown as Cluster

  it('shows each partition with the node that holds it now', () => {
    expect(holdersOf(cluster).map(({ node, partitions }) => [node?.bootId, partitions.map((one) => one.id)])).toEqual([
      ['a', [0, 2]],
      ['b', [1]],
      [undefined, [3, 4]],
    ])
  })

  it('names the rules of time zones, and what they are where nodes differ', () => {
    const debian = { source: '/usr/share/zoneinfo', version: '2026a', digest: '79957fa62d10' }
    expect([zonesText(debian, false), zonesText(debian, true)]).toEqual(['2026a', '2026a · 79957fa62d10'])
    expect(zonesText({ source: 'embedded, go1.26.8', version: '', digest: 'f2a120d907ff' }, false)).toBe('embedded, go1.26.8')
  })

  it('is summed up by its worst', () => {
    expect(summaryOf(cluster)).toEqual({ held: 4, orphans: 1, worstLagMs: 1500, worstDueMs: 0, worstSkewMs: 30 })
    expect([termsOf(cluster.partitions), termsOf(cluster.partitions.slice(0, 1)), termsOf([])]).toEqual(['1–5', '1', ''])
  })
})
