// Cells of a job's line in a list.
import './jobs.css'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { Job } from '../../api/types'
import { lastRunMessage } from '../../lib/why'
import { JobStateChip, OnlineCount, RunStateChip } from '../../ui/StateChip'
import { RelativeTime } from '../../ui/TimeText'

/** Name, who owns it on hover, and its labels. */
export function JobName({ job }: { job: Job }) {
  const { t } = useTranslation()
  const labels = Object.entries(job.labels)
  const owner = job.owner.name || job.owner.email
  const title = owner ? `${job.name} · ${t('jobs.list.owner')}: ${owner}` : job.name
  return (
    <span className="one-line">
      <Link to="/jobs/$jobId" params={{ jobId: job.id }} title={title} className="clip job-name">
        <strong>{job.name}</strong>
      </Link>
      {labels.length > 0 && (
        <span className="labels">
          {labels.map(([key, value]) => (
            <Link key={key} to="/jobs" search={{ label: `${key}=${value}` }} className="label-chip" title={`${key}=${value}`} preload={false}>
              {key}={value}
            </Link>
          ))}
        </span>
      )}
    </span>
  )
}

/** Its next fire; of a paused one who paused it. */
export function NextOrPaused({ job }: { job: Job }) {
  const { t } = useTranslation()
  if (job.state !== 'paused') return <NextFire job={job} />
  const why = [job.pausedBy && t('jobs.detail.pausedBy', { who: job.pausedBy }), job.pauseNote].filter(Boolean).join(' · ')
  return (
    <span title={why || undefined}>
      <JobStateChip state={job.state} />
      {why && <span className="sr-only">{why}</span>}
    </span>
  )
}

export function NextFire({ job }: { job: Job }) {
  const { t } = useTranslation()
  if (job.neverFires) return <span className="st-timeout">{t('jobs.list.neverFires')}</span>
  if (job.state === 'paused' || !job.nextFireAt) return <span className="muted">—</span>
  return <RelativeTime at={job.nextFireAt} zone={job.schedule.zone} />
}

/** State, time and error of the last run, in one line. While it goes on, the error is that of the run before. */
export function LastRunCell({ job }: { job: Job }) {
  const { t } = useTranslation()
  const { lastRun } = job
  // Its strip says that it has not yet run.
  if (!lastRun) return <span className="muted">—</span>
  const piles = job.pilesUp && t('jobs.list.pilesUp', { count: job.waiting })
  const ended = job.recentRuns.find((run) => run.finishedAt !== null)
  const why = [piles, ended && lastRunMessage(ended, t)].filter(Boolean).join(' ')
  return (
    <span className="one-line">
      <Link to="/runs/$runId" params={{ runId: lastRun.id }}>
        <RunStateChip state={lastRun.state} />
      </Link>
      <span className="clip muted">
        <RelativeTime at={lastRun.finishedAt ?? lastRun.fireAt} zone={job.schedule.zone} short />
      </span>
      {why && (
        <span className={`clip last-why${piles ? ' st-timeout' : ''}`} title={why}>
          {why}
        </span>
      )}
    </span>
  )
}

export function ExecutorCell({ job }: { job: Job }) {
  const { t } = useTranslation()
  return (
    <span className="one-line">
      <Link to="/executors/$executorId" params={{ executorId: job.executor.id }} className="clip executor-name" title={job.executor.name}>
        {job.executor.name}
      </Link>
      {job.executorOnline === 0 && (
        <span className="clip" title={t('jobs.list.offline')}>
          <OnlineCount count={0} />
        </span>
      )}
    </span>
  )
}
