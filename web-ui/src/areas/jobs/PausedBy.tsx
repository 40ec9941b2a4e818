// Author, time and reason of a pause, as far as they are known.
import { useTranslation } from 'react-i18next'
import type { Job } from '../../api/types'
import { RelativeTime } from '../../ui/TimeText'

export function PausedBy({ job }: { job: Job }) {
  const { t } = useTranslation()
  return (
    <>
      {job.pausedBy ? t('jobs.detail.pausedBy', { who: job.pausedBy }) : t('jobs.detail.pausedPlain')}
      {job.pausedAt && (
        <>
          {' · '}
          <RelativeTime at={job.pausedAt} zone={job.schedule.zone} />
        </>
      )}
      {job.pauseNote && ` · ${job.pauseNote}`}
    </>
  )
}
