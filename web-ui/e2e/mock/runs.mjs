// Runs of the mock: a past, and an engine that fires jobs, logs and finishes.
import { instances, iso, jobs, newId, nextFire, seconds } from './data.mjs'

/** Newest first. */
export const runs = []
export const logs = new Map()
const STACK = `goroutine 812 [running]:
runtime/debug.Stack()
	/usr/lib/go/src/runtime/debug/stack.go:26 +0x5e
shop/internal/gateway.(*Client).Charge(0xc0001b2000, {0x7f1c, 0x14})
	/app/internal/gateway/client.go:118 +0x2a1
main.main.func3({0x9a1e40?, 0xc00021c000?})
	/app/cmd/shop/main.go:74 +0x1f`

export function addRun(job, cause, fireAt, extra = {}) {
  const run = {
    id: newId(), jobId: job.id, jobName: job.name, jobRevision: job.revision, executor: job.executor, handler: job.handler, cause, fireAt: iso(fireAt), state: 'due', reason: '', message: '',
    attempt: 1, maxAttempts: job.retry.maxAttempts, fence: runs.length + 1, failedSends: 0, instance: null, note: '', requestedBy: '', claimedAt: iso(Math.min(fireAt, Date.now()) - (cause === 'schedule' ? 1800 : 0)),
    offeredAt: null, grantedAt: null, startedAt: null, finishedAt: null, notBefore: null, deadlineAt: null, latenessMs: null, durationMs: null, input: job.input, output: null, attempts: [], ...extra,
  }
  const at = runs.findIndex((one) => one.fireAt <= run.fireAt)
  if (at < 0) runs.push(run)
  else runs.splice(at, 0, run)
  logs.set(run.id, { lines: [], complete: false, waiters: new Set() })
  if (cause !== 'retry' || !job.lastRun || job.lastRun.fireAt <= run.fireAt) job.lastRun = run
  job.recentRuns = [run, ...job.recentRuns].slice(0, 10)
  return run
}

export function log(run, level, msg, attrs, at = Date.now()) {
  const entry = logs.get(run.id)
  entry.lines.push({ n: entry.lines.length + 1, at: iso(at), attempt: run.attempt, level, msg, ...(attrs ? { attrs } : {}) })
  for (const wake of entry.waiters) wake()
}

export function start(run, at) {
  const choices = instances.filter((i) => i.executorId === run.executor.id && i.state === 'online')
  if (choices.length === 0) {
    run.reason = 'waiting_for_instance'
    run.message = 'no instance of the executor is online'
    return false
  }
  const chosen = choices[runs.length % choices.length]
  run.instance = { id: chosen.id, name: chosen.name }
  const attempt = { number: run.attempt, fence: run.fence, instance: run.instance, state: 'running', offeredAt: iso(at + 2), grantedAt: iso(at + 5), startedAt: iso(at + 7), finishedAt: null }
  run.attempts.push(attempt)
  Object.assign(run, { state: 'running', offeredAt: attempt.offeredAt, grantedAt: attempt.grantedAt, startedAt: run.startedAt ?? attempt.startedAt })
  run.latenessMs ??= Math.max(0, at + 7 - Date.parse(run.fireAt))
  return true
}

export function finish(run, state, at, error) {
  const attempt = run.attempts.at(-1)
  if (attempt) Object.assign(attempt, { state, finishedAt: iso(at), ...(error ? { errorKind: error.kind, error: error.text, stack: error.stack } : {}) })
  if (state === 'failed' && run.attempt < run.maxAttempts) {
    Object.assign(run, { state: 'retry_wait', notBefore: iso(at + 5_000) })
    return
  }
  Object.assign(run, { state, finishedAt: iso(at), durationMs: run.startedAt ? at - Date.parse(run.startedAt) : null, errorKind: error?.kind, error: error?.text })
  if (state === 'succeeded') run.output = { checked: 4182, differences: 0, tookMs: run.durationMs }
  const entry = logs.get(run.id)
  entry.complete = true
  for (const wake of entry.waiters) wake()
}

const BOOM = { kind: 'panic', text: 'charge order 4711: gateway answered 502 Bad Gateway after 3 tries', stack: STACK }

function past() {
  const now = Date.now()
  for (let i = 130; i >= 1; i--) {
    const job = jobs[i % 4]
    const at = Math.floor((now - i * 41_000) / 1000) * 1000
    const run = addRun(job, i % 17 === 0 ? 'manual' : 'schedule', at, i % 17 === 0 ? { requestedBy: 'maria', note: 'after the fix' } : {})
    start(run, at + (i % 9) * 3)
    log(run, 'INFO', `${run.handler} begins`, { day: '2026-11-21' }, at + 9)
    log(run, 'DEBUG', 'read 4,182 orders 订单已读取 ✅', undefined, at + 120)
    if (i % 13 === 0) {
      run.attempt = run.maxAttempts
      log(run, 'ERROR', '\u001b[31mgateway failed\u001b[0m with <script>alert(1)</script>', { status: 502 }, at + 800)
      finish(run, 'failed', at + 1_200 + i, BOOM)
    } else if (i % 29 === 0) finish(run, 'timed_out', at + 15_000, { kind: 'timeout', text: 'ran longer than 15s' })
    else if (i % 37 === 0) {
      Object.assign(run, { state: 'lost', message: 'instance shop-0 went silent', finishedAt: iso(at + 30_000) })
      logs.get(run.id).complete = true
    } else finish(run, 'succeeded', at + 300 + ((i * 7919) % 4000))
  }
  const late = addRun(jobs[4], 'schedule', now - 3_600_000)
  Object.assign(late, { state: 'missed', reason: 'misfire', message: 'fire time passed more than 5s ago while the job was paused', finishedAt: iso(now - 3_500_000) })
  logs.get(late.id).complete = true
  const waiting = addRun(jobs[5], 'schedule', now - 20_000)
  start(waiting, now)
  const skipped = addRun(jobs[2], 'schedule', now - 50_000)
  Object.assign(skipped, { state: 'discarded', reason: 'overlap', message: 'the run before it still goes on (discard later)', finishedAt: iso(now - 50_000) })
  logs.get(skipped.id).complete = true
  const holiday = addRun(jobs[3], 'schedule', now - 70_000)
  Object.assign(holiday, { state: 'excluded', reason: 'calendar', message: 'holiday 2026-11-21 in the calendar cn', finishedAt: iso(now - 75_000) })
  logs.get(holiday.id).complete = true
  const big = addRun(jobs[1], 'manual', now - 600_000, { requestedBy: 'admin' })
  start(big, now - 600_000)
  for (let n = 0; n < 30_000; n++) log(big, n % 500 === 0 ? 'WARN' : 'INFO', `row ${n} reconciled`, { order: 100000 + n }, now - 600_000 + n)
  log(big, 'INFO', 'x'.repeat(40_000))
  finish(big, 'succeeded', now - 560_000)
  const retried = addRun(jobs[3], 'schedule', now - 90_000)
  for (let a = 1; a <= 3; a++) {
    retried.attempt = a
    start(retried, now - 90_000 + (a - 1) * 12_000)
    log(retried, 'WARN', `try ${a}`, undefined, now - 90_000 + (a - 1) * 12_000)
    finish(retried, 'failed', now - 90_000 + (a - 1) * 12_000 + 3_000 * a, BOOM)
  }
}
past()

/** One step of the world, each half second. */
export function tick(state) {
  const now = Date.now()
  for (const job of jobs) {
    if (job.state !== 'enabled') continue
    const planned = state.next.get(job.schedule)
    if (planned !== undefined && planned <= now) addRun(job, 'schedule', planned)
    state.next.set(job.schedule, nextFire(job))
  }
  for (const run of runs.slice(0, 60)) step(run, now)
}

function step(run, now) {
  if (run.state === 'due' && Date.parse(run.fireAt) <= now) start(run, now)
  else if (run.state === 'retry_wait' && Date.parse(run.notBefore) <= now) {
    run.attempt++
    start(run, now)
  } else if (run.state === 'cancelling') finish(run, 'cancelled', now)
  else if (run.state === 'running') {
    const age = now - Date.parse(run.attempts.at(-1).startedAt)
    const wanted = seconds(run.input?.sleep) * 1000 || (run.cause === 'schedule' ? 2_500 : 8_000)
    log(run, age % 5 < 1 ? 'WARN' : 'INFO', `step ${logs.get(run.id).lines.length + 1} done`, { elapsed: `${Math.round(age)}ms` })
    if (age > wanted) {
      const fails = run.handler === 'flaky-gateway' && run.attempt < 3
      finish(run, fails ? 'failed' : 'succeeded', now, fails ? BOOM : undefined)
    }
  }
}

