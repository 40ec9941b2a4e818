// What people and programs did to a job: who made, edited, paused and resumed it, when and why.
import { useQuery } from '../../../api/useQuery'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { queries } from '../../../api/queries'
import type { JobEvent } from '../../../api/types'
import { Changes } from '../../../ui/Changes'
import { Pager, ResourceTable, type Column } from '../../../ui/ResourceTable'
import { Blank } from '../../../ui/States'
import { AbsoluteTime } from '../../../ui/TimeText'

export function JobHistoryTab() {
  const { t } = useTranslation()
  const { jobId } = useParams({ from: '/app/jobs/$jobId' })
  const { cursor } = useSearch({ from: '/app/jobs/$jobId/history' })
  const navigate = useNavigate()
  const events = useQuery(queries.jobEvents(jobId, cursor))
  const columns: Column<JobEvent>[] = [
    {
      key: 'what',
      title: t('jobs.history.what'),
      kind: 'title',
      render: (one) => (
        <>
          <strong>{t(`jobs.history.did.${one.what}`)}</strong>
          {one.what === 'created' && one.state === 'paused' && `, ${t('jobs.history.bornPaused')}`}
          {one.what === 'edited' && (
            <>
              {' · '}
              <Link to="/jobs/$jobId/revisions" params={{ jobId }}>
                {t('jobs.revisions.title', { n: one.revision })}
              </Link>
            </>
          )}
        </>
      ),
    },
    { key: 'at', title: t('jobs.history.at'), sorted: 'descending', render: (one) => <AbsoluteTime at={one.at} /> },
    { key: 'by', title: t('jobs.history.by'), render: (one) => one.by || <span className="muted">—</span> },
    { key: 'note', title: t('field.note'), render: (one) => (one.note ? <span style={{ overflowWrap: 'anywhere' }}>{one.note}</span> : <span className="muted">—</span>) },
  ]
  return (
    <div className="stack">
      <section className="card flush" aria-label={t('jobs.history.title')}>
        <div className="card-head">
          <h2>{t('jobs.history.title')}</h2>
        </div>
        <ResourceTable
          label={t('jobs.history.title')}
          columns={columns}
          rows={events.data?.items}
          rowKey={(one) => `${one.at} ${one.what} ${one.revision ?? ''} ${one.by} ${one.note ?? ''}`}
          error={events.error}
          onRetry={() => void events.refetch()}
          updatedAt={events.dataUpdatedAt}
          empty={<Blank title={t('jobs.history.empty')} />}
          pager={<Pager cursor={cursor} nextCursor={events.data?.nextCursor} onGo={(next) => void navigate({ to: '/jobs/$jobId/history', params: { jobId }, search: next ? { cursor: next } : {} })} />}
        />
      </section>
      <Changes kind="job" object={jobId} />
    </div>
  )
}
