import i18next, { type TFunction } from 'i18next'
import type { LastRun, Run, RunDetail, Timer } from '../api/types'
import { serverNow } from './connection'
import { said } from './said'
import { formatWithZone } from './time'

/** Why a run is as it is, in the person's language; "" when there is nothing to say. */
export function reasonText(run: Pick<Run, 'reason'>, t: TFunction): string {
  const key = `runs.reason.${run.reason}`
  // A reason which a newer server knows is shown as it is.
  return run.reason && i18next.exists(key) ? t(key as 'runs.reason.misfire') : run.reason
}

/** The first line of a text that says anything. */
export const firstLine = (text: string | undefined): string => text?.split('\n').map((line) => line.trim()).find(Boolean) ?? ''

/** firstLine of an error, in the person's language if the server wrote it. */
export const errorLine = (text: string | undefined, t: TFunction): string => said(firstLine(text), t)

/** Why a run ended badly or did not start, in one line; "" for other runs. */
export function whyLine(run: Pick<Run, 'error' | 'reason' | 'message'>, t: TFunction): string {
  return errorLine(run.error, t) || reasonText(run, t) || said(run.message, t)
}

/** whyLine of one of a job's newest runs, whose message is the error of a run that failed. */
export function lastRunMessage(run: LastRun, t: TFunction): string {
  if (!run.message) return ''
  const message = said(run.message, t)
  return run.state === 'failed' ? message : reasonText({ reason: run.reason ?? '' }, t) || message
}

/** Why a timer's run is as it is: who has cancelled it, what went wrong; "" when there is nothing to say. */
export function timerWhy(timer: Pick<Timer, 'reason' | 'message' | 'error'>, t: TFunction): string {
  return [reasonText(timer, t), said(timer.error || timer.message, t)].filter(Boolean).join(': ')
}

/** Why there is no log line: an empty box would leave the reader guessing. */
export function whyEmpty(run: Pick<RunDetail, 'state' | 'reason' | 'startedAt' | 'executor' | 'attempts' | 'fireAt'>, t: TFunction): string {
  switch (run.state) {
    case 'due':
      if (Date.parse(run.fireAt) > serverNow()) return t('runs.log.emptyPlanned')
      if (run.reason === 'waiting_for_instance') return t('runs.log.emptyNoExecutor', { name: run.executor.name })
      return run.reason === 'waiting_for_slot' ? t('runs.log.emptyWaitSlot') : t('runs.log.emptyDue')
    case 'offered':
      return t('runs.log.emptyOffered')
    case 'running':
    case 'cancelling':
      return t('runs.log.emptyRunning')
    case 'retry_wait':
      return t('runs.log.emptyRetry')
    default:
      return run.startedAt === null && run.attempts.every((one) => one.startedAt === null) ? t('runs.log.emptyMissed') : t('runs.log.emptyDone')
  }
}

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z/g

/** The server's sentences hold instants in UTC; people read their own clock, with its zone. */
export function onOurClock(text: string, zone?: string): string {
  return text.replace(INSTANT, (at, fraction: string | undefined) => formatWithZone(at, zone, fraction !== undefined && fraction !== '.000'))
}
