import i18next, { type TFunction } from 'i18next'
import type { Run, RunDetail } from '../api/types'

/** Why a run is as it is, in the person's language; "" when there is nothing to say. */
export function reasonText(run: Pick<Run, 'reason'>, t: TFunction): string {
  const key = `runs.reason.${run.reason}`
  // A reason which a newer server knows is shown as it is.
  return run.reason && i18next.exists(key) ? t(key as 'runs.reason.misfire') : run.reason
}

/** Why there is no log line: an empty box would leave the reader guessing. */
export function whyEmpty(run: Pick<RunDetail, 'state' | 'reason' | 'startedAt' | 'executor' | 'attempts'>, t: TFunction): string {
  switch (run.state) {
    case 'due':
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
