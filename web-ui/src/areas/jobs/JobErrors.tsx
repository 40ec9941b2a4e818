// The errors that a job's runs of 7 days ended with, grouped by their text.
import { RedoOutlined } from '@ant-design/icons'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { http, take } from '../../api/client'
import type { Body } from '../../api/endpoints'
import { queries, refreshJobs } from '../../api/queries'
import { statisticQueries } from '../../api/statistics'
import type { FailureGroup, Job, LastRun } from '../../api/types'
import { useQuery } from '../../api/useQuery'
import { said } from '../../lib/said'
import { errorLine } from '../../lib/why'
import { ActionButton } from '../../ui/ActionButton'
import { useCan, useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { AbsoluteTime, RelativeTime } from '../../ui/TimeText'
import { useConfirm } from '../../ui/useConfirm'

const bulk = (body: Body<'/api/v1/bulk', 'post'>) => take(http.POST('/api/v1/bulk', { body }))

export function JobErrors({ job }: { job: Job }) {
  const { t } = useTranslation()
  const operates = useCan('operator')
  const errors = useQuery({ ...statisticQueries.errors(job.id), enabled: (job.stats7d?.failed ?? 0) > 0 })
  const { data } = errors
  if (!data?.groups || data.groups.length === 0) return null
  const columns: Column<FailureGroup>[] = [
    { key: 'error', title: t('errorGroups.error'), kind: 'title', render: (group) => <ErrorText group={group} recent={job.recentRuns} /> },
    { key: 'count', title: t('errorGroups.count'), align: 'right', render: (group) => <span className="num st-failed">{group.failures.toLocaleString()}</span> },
    { key: 'first', title: t('errorGroups.first'), render: (group) => <AbsoluteTime at={group.firstAt} zone={job.schedule.zone} /> },
    {
      key: 'last',
      title: t('errorGroups.last'),
      render: (group) => (
        <Link to="/runs/$runId" params={{ runId: group.lastRunId }}>
          <RelativeTime at={group.lastAt} zone={job.schedule.zone} />
        </Link>
      ),
    },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (group) =>
        group.fingerprint && (
          <span className="row end">
            <Link to="/jobs/$jobId/runs" params={{ jobId: job.id }} search={{ fingerprint: group.fingerprint }} title={t('errorGroups.filterHelp')}>
              {t('errorGroups.runs')}
            </Link>
            {operates && <RetryAll job={job} fingerprint={group.fingerprint} from={data.from} />}
          </span>
        ),
    },
  ]
  return (
    <section className="card flush" aria-label={t('errorGroups.title')}>
      <div className="card-head">
        <h2>{t('errorGroups.title')}</h2>
        <span className="muted small">{t('errorGroups.help')}</span>
      </div>
      <ResourceTable
        label={t('errorGroups.title')}
        columns={columns}
        rows={data.groups}
        rowKey={(group) => group.fingerprint ?? 'others'}
        error={errors.error}
        onRetry={() => void errors.refetch()}
        empty={<p className="muted">{t('errorGroups.none')}</p>}
      />
    </section>
  )
}

/** The mask of a group begins with the kind of the error, which is for machines. */
export const maskText = (name: string) => name.replace(/^[a-z_]+( [a-z_]+)*: /, '')

/** The newest message of the group; its mask below it, if it is another text. */
function ErrorText({ group, recent }: { group: FailureGroup; recent: LastRun[] }) {
  const { t } = useTranslation()
  const shown = recent.find((run) => run.id === group.lastRunId)?.message
  const asks = !shown && Boolean(group.fingerprint)
  const run = useQuery({ ...queries.run(group.lastRunId), enabled: asks, retry: false, refetchInterval: false }).data
  const newest = errorLine(shown ?? run?.error, t)
  if (!group.fingerprint) return <span className="muted">{t('errorGroups.others')}</span>
  if (!group.name) return <span className="muted">{t('errorGroups.unnamed', { fingerprint: group.fingerprint })}</span>
  const mask = said(maskText(group.name), t)
  if (!newest || newest === mask) return <span className="any-wrap">{mask}</span>
  return (
    <>
      <span className="any-wrap">{newest}</span>
      <br />
      <span className="muted small any-wrap">{mask}</span>
    </>
  )
}

/** Asks how many runs there are, and retries exactly these. */
function RetryAll({ job, fingerprint, from }: { job: Job; fingerprint: string; from: string }) {
  const { t } = useTranslation()
  const confirm = useConfirm()
  const showError = useShowError()
  const [busy, setBusy] = useState(false)
  const order = { action: 'retry', filter: { jobId: job.id, fingerprint, from } } as const
  const retry = async (expected: number) => {
    try {
      await bulk({ ...order, expected })
      message.success(t('errorGroups.retried', { count: expected }))
      refreshJobs()
    } catch (err) {
      showError(err)
    }
  }
  const ask = async () => {
    setBusy(true)
    try {
      const { total, totalMore } = await bulk({ ...order, dryRun: true })
      if (totalMore) message.info(t('errorGroups.retryMany'))
      else if (total === 0) message.info(t('errorGroups.retryNone'))
      else {
        confirm({
          title: t('errorGroups.retryTitle', { count: total }),
          content: t('errorGroups.retryHelp'),
          okText: t('errorGroups.retry'),
          onOk: () => retry(total),
        })
      }
    } catch (err) {
      showError(err)
    } finally {
      setBusy(false)
    }
  }
  return (
    <ActionButton size="small" icon={<RedoOutlined />} loading={busy} onClick={() => void ask()}>
      {t('errorGroups.retry')}
    </ActionButton>
  )
}
