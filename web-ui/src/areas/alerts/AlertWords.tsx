// What alerts say: kinds in words, names of jobs, executors and channels by
// their ids, and what a rule or a silence matches.
import { useQuery } from '../../api/useQuery'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { alertQueries } from './alerts'
import { queries } from '../../api/queries'
import type { AlertKind, AlertRuleMatch, Id, Incident } from '../../api/types'
import { RelativeTime } from '../../ui/TimeText'

export const ALERT_KINDS: AlertKind[] = ['run_failed', 'run_timed_out', 'run_lost', 'run_missed', 'no_executor', 'run_late', 'run_long', 'job_absent', 'runs_pile_up', 'run_succeeded']

/** A kind which a newer server knows is shown as it is. */
export function useKindText(): (kind: string) => string {
  const { t, i18n } = useTranslation()
  return (kind) => (i18n.exists(`deliveries.kinds.${kind}`) ? t(`deliveries.kinds.${kind}` as 'deliveries.kinds.run_failed') : kind)
}

const resting = { refetchInterval: false as const, staleTime: 60_000 }

/** Of something that is gone only its id is left. */
export function JobName({ id }: { id: Id }) {
  return useQuery({ ...queries.job(id), ...resting }).data?.name ?? id
}

export function ExecutorName({ id }: { id: Id }) {
  return useQuery({ ...queries.executor(id), ...resting }).data?.name ?? id
}

export function ChannelName({ id }: { id: Id }) {
  return useQuery(alertQueries.channels()).data?.items.find((one) => one.id === id)?.name ?? id
}

/** How many messages there were, when the last one was, and how many receivers did not get one. */
export function Messages({ incident: one }: { incident: Incident }) {
  const { t } = useTranslation()
  if (!one.toldAt) return <span className="muted">{t('alerts.notTold')}</span>
  return (
    <span>
      <span className="num">{one.messages}</span> <span className="muted small">· {t('alerts.toldLast')}</span> <RelativeTime at={one.toldAt} />
      {one.undelivered > 0 && (
        <div>
          <Link to="/alerts/incidents/$incidentId" params={{ incidentId: one.id }} className="small st-failed">
            {t('alerts.undelivered', { count: one.undelivered })}
          </Link>
        </div>
      )}
    </span>
  )
}

/** What an incident is about. */
export function IncidentAbout({ incident: one }: { incident: Incident }) {
  const { t } = useTranslation()
  const [first] = one.jobs
  return (
    <div className="any-wrap">
      {one.jobId ? (
        <Link to="/jobs/$jobId" params={{ jobId: one.jobId }}>
          {first?.name ?? one.jobId}
        </Link>
      ) : (
        one.executorId && (
          <Link to="/executors/$executorId" params={{ executorId: one.executorId }}>
            <ExecutorName id={one.executorId} />
          </Link>
        )
      )}
      {!one.jobId && one.jobCount > 0 && (
        <div className="muted small">
          {one.jobCount >= 1_000 ? t('alerts.manyJobs', { n: one.jobCount }) : t('alerts.jobCount', { count: one.jobCount })}: {one.jobs.slice(0, 3).map((job) => job.name).join(', ')}
          {one.jobCount > 3 && ' …'}
        </div>
      )}
    </div>
  )
}

export function Listed({ children }: { children: ReactNode[] }) {
  return children.map((one, i) => (
    // A list of ids keeps its order.
    // oxlint-disable-next-line react/no-array-index-key
    <span key={i}>
      {i > 0 && ', '}
      {one}
    </span>
  ))
}

/** "Run failed · executors: shop · labels: team=finance"; everything: so said. */
export function MatchText({ match, anyKind }: { match: AlertRuleMatch | undefined; anyKind?: string }) {
  const { t } = useTranslation()
  const kind = useKindText()
  const { kinds = [], executors = [], jobs = [], executorIds = [], jobIds = [], labels } = match ?? {}
  const parts: [string, ReactNode][] = []
  if (kinds.length > 0 || anyKind) parts.push([t('alerts.silence.kinds'), kinds.map(kind).join(', ') || anyKind])
  if (executors.length > 0) parts.push([t('alerts.silence.executors'), executors.join(', ')])
  if (jobs.length > 0) parts.push([t('alerts.silence.jobs'), jobs.join(', ')])
  if (executorIds.length > 0) parts.push([t('alerts.silence.executors'), <Listed key="e">{executorIds.map((id) => <ExecutorName key={id} id={id} />)}</Listed>])
  if (jobIds.length > 0) parts.push([t('alerts.silence.jobs'), <Listed key="j">{jobIds.map((id) => <JobName key={id} id={id} />)}</Listed>])
  if (labels) parts.push([t('alerts.silence.labels'), <span key="l" className="mono">{labels}</span>])
  if (parts.length === 0) return <span>{t('alerts.silence.everything')}</span>
  return parts.map(([label, what]) => (
    <div key={label} className="any-wrap">
      <span className="muted small">{label}:</span> {what}
    </div>
  ))
}
