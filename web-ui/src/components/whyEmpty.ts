import type { TFunction } from 'i18next'
import type { RunDetail } from '../api/types'

/** Why there is no log line: an empty box would leave the reader guessing. */
export function whyEmpty(run: Pick<RunDetail, 'state' | 'reason' | 'startedAt' | 'executor' | 'attempts'>, t: TFunction): string {
  switch (run.state) {
    case 'due':
      return run.reason.includes('no_instance') || run.reason.includes('no_executor') || run.reason.includes('offline')
        ? t('runs.log.emptyNoExecutor', { name: run.executor.name })
        : t('runs.log.emptyDue')
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
