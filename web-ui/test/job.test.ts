import { describe, expect, it } from 'vitest'
import type { Job, JobWrite } from '../src/api/types'
import { exampleOf } from '../src/ui/input/JsonEditor'
import { safeNext } from '../src/lib/next'
import { conflicts, diffFields, merge } from '../src/lib/diff'
import { fieldPath, fieldsOf, newJob, scheduleOf, splitLabel, writeOf, writeOfFields } from '../src/areas/jobs/form/jobForm'
import { whyEmpty } from '../src/lib/why'
import { segmentsOf, segmentsOfPart } from '../src/areas/runs/timeline'
import type { Run, RunDetail } from '../src/api/types'

const write: JobWrite = {
  ...newJob('11', 'daily-revenue'),
  name: 'daily-revenue',
  labels: { team: 'finance', 'app.kubernetes.io/name': 'shop' },
  input: { day: '2026-11-20', nested: { b: 1, a: [2] } },
  schedule: { kind: 'cron', expr: '0 2 * * *', dialect: 'auto', zone: 'Asia/Shanghai', startAt: '2026-12-01T00:00:00.000Z' },
  owner: { name: 'Maria', email: 'maria@shop.example' },
}

describe('job form', () => {
  it('gives back what it was given', () => {
    expect(writeOfFields(fieldsOf(write))).toEqual(write)
    for (const sharding of [
      { mode: 'fixed', shards: 8, before: 'prepare', timeout: '10m' },
      { mode: 'broadcast', onGone: 'move', after: 'collect' },
    ] as const) {
      expect(writeOfFields(fieldsOf({ ...write, sharding })).sharding).toEqual(sharding)
    }
  })

  it.each<JobWrite['schedule']>([
    { kind: 'fixed_delay', every: '10m', zone: 'UTC', jitter: '30s' },
    { kind: 'daily_window', every: '15m', windowFrom: '08:00', windowTo: '18:00', zone: 'Europe/Berlin', dstGap: 'skip' },
    { kind: 'instants', instants: ['2026-12-01T08:00:00+08:00', '2026-12-24T18:00:00+08:00'], zone: 'Asia/Shanghai' },
    { kind: 'fixed_rate', every: '30s', anchor: '2026-11-01T00:00:00.000Z', zone: 'UTC', calendars: [{ id: '7' }], calendarDays: 'workdays' },
  ])('keeps all of a $kind, also what it does not show', (schedule) => {
    expect(writeOfFields(fieldsOf({ ...write, schedule })).schedule).toEqual(schedule)
  })

  it('keeps the script of an agent, and sends none with other handlers', () => {
    const script = { id: '9', revision: 3, args: ['-v', 'two words'] }
    const agent: JobWrite = { ...write, handler: 'script.shell', script }
    expect(writeOfFields(fieldsOf(agent))).toEqual(agent)
    const newest = { ...agent, script: { id: '9', args: [] } }
    expect(writeOfFields(fieldsOf(newest))).toEqual(newest)
    expect(writeOfFields({ ...fieldsOf(agent), handler: 'daily-revenue' })).not.toHaveProperty('script')
  })

  it('sends nothing that the choices beside it do not take', () => {
    const stored = { ...write, blocking: 'serial', parallelism: 3, misfire: { policy: 'skip', threshold: '5s', window: '1h', maxRuns: 3 } } as const
    expect(writeOfFields(fieldsOf(stored))).toMatchObject({ parallelism: 0, misfire: { policy: 'skip', threshold: '5s' } })
    expect(writeOfFields(fieldsOf(stored)).misfire).not.toHaveProperty('maxRuns')
    const counts = { ...stored, blocking: 'parallel', misfire: { ...stored.misfire, policy: 'all' } } as const
    expect(writeOfFields(fieldsOf(counts))).toEqual(counts)
    const once = { ...write, schedule: { ...write.schedule, kind: 'fixed_rate', every: '5s', at: '2026-12-01T00:00:00.000Z' } } as const
    expect(writeOfFields(fieldsOf(once)).schedule).toEqual({ kind: 'fixed_rate', every: '5s', zone: 'Asia/Shanghai', startAt: '2026-12-01T00:00:00.000Z' })
    const window = { kind: 'daily_window', every: '15m', windowFrom: '08:00', windowTo: '18:00', zone: 'Europe/Berlin' } as const
    expect(writeOfFields(fieldsOf({ ...write, schedule: { ...window, dstOverlap: 'both' } })).schedule).toEqual(window)
  })

  it('keeps how an instance is chosen', () => {
    const routed: JobWrite = {
      ...write,
      routing: 'consistent_hash',
      routingKey: '/customer/id',
      requireLabels: 'zone=eu, !spot',
      preferLabels: 'gpu',
      sendRetry: { maxSends: 5, delay: '1s', backoff: 2, maxDelay: '30s' },
    }
    expect(writeOfFields(fieldsOf(routed))).toEqual(routed)
    // A key that is not shown any more is not sent either: only consistent hash has one.
    expect(writeOfFields({ ...fieldsOf(routed), routing: 'random' }).routingKey).toBe('')
  })

  it('reads wall times in the zone of the schedule', () => {
    const fields = fieldsOf(write)
    expect(fields.schedule.startAt?.format('YYYY-MM-DD HH:mm')).toBe('2026-12-01 08:00')
    expect(scheduleOf({ ...fields.schedule, zone: 'UTC' })?.startAt).toBe('2026-12-01T08:00:00.000Z')
  })

  it('sends only what the kind of schedule uses', () => {
    const fields = fieldsOf(write)
    expect(scheduleOf({ ...fields.schedule, kind: 'fixed_rate', every: '30s', startAt: null })).toEqual({ kind: 'fixed_rate', every: '30s', zone: 'Asia/Shanghai' })
    expect(scheduleOf({ ...fields.schedule, kind: 'none' })).toEqual({ kind: 'none', zone: 'Asia/Shanghai' })
    expect(scheduleOf({ ...fields.schedule, expr: '  ' })).toBeUndefined()
  })

  it('sends a secret only when one was typed', () => {
    expect(writeOfFields(fieldsOf(write)).alert).not.toHaveProperty('webhookSecret')
    const fields = fieldsOf(write)
    fields.alert.webhookSecret = 's3cret'
    expect(writeOfFields(fields).alert.webhookSecret).toBe('s3cret')
  })

  it.each([
    ['body.schedule.expr', ['schedule', 'expr']],
    ['body.executor.id', ['executorId']],
    ['body.input.day', ['inputText']],
    ['body.labels.team', ['labels']],
    ['body.alert.emails[1]', ['alert', 'emails']],
    [undefined, undefined],
  ])('finds the field of %s', (location, path) => expect(fieldPath({ location: location ?? '', message: '' })).toEqual(path))

  it('splits a label at its first sign', () => {
    expect(splitLabel('a=b=c')).toEqual(['a', 'b=c'])
    expect(splitLabel('=b')).toBeUndefined()
    expect(splitLabel('plain')).toBeUndefined()
  })

  it('makes an example from a schema', () => {
    const schema = { type: 'object', properties: { day: { type: 'string', format: 'date-time' }, n: { type: 'integer', default: 3 }, mode: { enum: ['a', 'b'] }, tags: { type: 'array', items: { type: 'string' } } } }
    expect(exampleOf(schema)).toEqual({ day: '2026-01-01T00:00:00Z', n: 3, mode: 'a', tags: [''] })
  })
})

describe('edit conflict', () => {
  const base = write
  const mine: JobWrite = { ...write, description: 'mine', timeout: '5m', labels: { team: 'pay' } }
  const theirs: JobWrite = { ...write, description: 'theirs', priority: 9, retry: { ...write.retry, delay: '1m' } }
  const list = conflicts(base, mine, theirs)

  it('suggests the side that changed, and asks where both did', () => {
    expect(Object.fromEntries(list.map((one) => [one.path, one.suggested]))).toEqual({
      description: undefined,
      labels: 'mine',
      priority: 'theirs',
      'retry.delay': 'theirs',
      timeout: 'mine',
    })
  })

  it('takes over the chosen fields and nothing else', () => {
    const merged = merge(mine, list, { description: 'mine', labels: 'mine', priority: 'theirs', 'retry.delay': 'theirs', timeout: 'mine' })
    expect(merged).toEqual({ ...mine, priority: 9, retry: { ...mine.retry, delay: '1m' } })
    expect(mine.priority).toBe(0)
  })

  it('sees no difference in the order of keys or in ways to say "nothing"', () => {
    expect(diffFields({ input: { a: 1, b: 2 }, note: '' }, { input: { b: 2, a: 1 }, note: null })).toEqual([])
  })

  it('leaves what cannot be written out of the stored job', () => {
    const job = { ...write, id: '5', revision: 3, executor: { id: '11', name: 'shop' }, alert: { ...write.alert, webhookSecretSet: true }, schedule: { ...write.schedule, text: { en: 'x', zh: 'y' } } } as unknown as Job
    expect(writeOf(job)).toEqual(write)
  })
})

describe('timeline', () => {
  const at = (s: number) => new Date(Date.parse('2026-11-21T12:00:00Z') + s * 1000).toISOString()
  const attempt = (number: number, offered: number, started: number | null, finished: number | null) => ({
    number, fence: number, instance: null, state: finished === null ? 'running' : 'failed', offeredAt: at(offered), grantedAt: at(offered), startedAt: started === null ? null : at(started), finishedAt: finished === null ? null : at(finished),
  })
  const run = { fireAt: at(0), claimedAt: at(-2), finishedAt: null, attempts: [attempt(1, 1, 2, 5), attempt(2, 15, 16, null)] } as unknown as RunDetail

  it('has a gap between attempts and an open end', () => {
    const rows = segmentsOf(run, Date.parse(at(20)))
    expect(rows.map((row) => row.segments.map((s) => `${s.kind} ${(s.from - Date.parse(at(0))) / 1000}-${(s.to - Date.parse(at(0))) / 1000}`))).toEqual([
      ['wait 0-1', 'offer 1-2', 'run 2-5'],
      ['gap 5-15', 'offer 15-16', 'run 16-20'],
    ])
  })

  it('tells the time of the handler from the time until its end was known', () => {
    const part = { state: 'succeeded', claimedAt: at(0), fireAt: at(0), offeredAt: at(1), startedAt: at(2), finishedAt: at(9), durationMs: 3_000 } as unknown as Run
    expect(segmentsOfPart(part, Date.parse(at(20))).map((s) => `${s.kind} ${(s.to - s.from) / 1000}`)).toEqual(['wait 1', 'offer 1', 'run 3', 'report 4'])
  })

  it('begins with the fire time, also where the offer came ahead of it', () => {
    const ahead = { ...run, attempts: [attempt(1, -1, 2, 5)] } as unknown as RunDetail
    const rows = segmentsOf(ahead, Date.parse(at(20)))
    expect(rows[0]?.segments.map((s) => `${s.kind} ${(s.from - Date.parse(at(0))) / 1000}`)).toEqual(['offer 0', 'run 2'])
  })
})

describe('the way back after signing in', () => {
  it.each(['/jobs?q=x', '/runs/5#L1'])('may lead to %s', (next) => expect(safeNext(next)).toBe(next))
  it.each(['//evil.example', 'https://evil.example', '/\\evil.example', 'jobs', '/login', undefined, 5])('may not lead to %s', (next) => expect(safeNext(next)).toBeUndefined())
})

describe('why a log is empty', () => {
  const t = ((key: string) => key) as never
  const run = (state: string, reason = '', startedAt: string | null = null) => ({ state, reason, startedAt, fireAt: '2026-01-01T00:00:00Z', executor: { id: '1', name: 'shop' }, attempts: [] }) as never
  it.each([
    ['due', '', 'runs.log.emptyDue'],
    ['due', 'waiting_for_instance', 'runs.log.emptyNoExecutor'],
    ['due', 'waiting_for_slot', 'runs.log.emptyWaitSlot'],
    ['running', '', 'runs.log.emptyRunning'],
    ['missed', 'misfire', 'runs.log.emptyMissed'],
  ])('%s %s', (state, reason, key) => expect(whyEmpty(run(state, reason), t)).toBe(key))

  it('differs for a run that did start', () => expect(whyEmpty(run('succeeded', '', '2026-11-21T12:00:00Z'), t)).toBe('runs.log.emptyDone'))
})
