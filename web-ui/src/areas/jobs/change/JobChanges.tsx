// The changes of a job: what people and programs did, when, why, and the fields before and after.
import { useQuery } from '../../../api/useQuery'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { queries } from '../../../api/queries'
import type { JobEvent, Revision } from '../../../api/types'
import { diffFields } from '../../../lib/diff'
import { said } from '../../../lib/said'
import { Changes } from '../../../ui/Changes'
import { Pager, ResourceTable, type Column } from '../../../ui/ResourceTable'
import { Blank } from '../../../ui/States'
import { AbsoluteTime } from '../../../ui/TimeText'
import { FieldDiffTable } from './FieldDiffTable'

export function JobChangesTab() {
  const { t } = useTranslation()
  const { jobId } = useParams({ from: '/app/jobs/$jobId' })
  const { cursor } = useSearch({ from: '/app/jobs/$jobId/changes' })
  const navigate = useNavigate()
  const events = useQuery(queries.jobEvents(jobId, cursor))
  const revisions = useQuery(queries.revisions(jobId)).data?.items
  const columns: Column<JobEvent>[] = [
    {
      key: 'what',
      title: t('jobs.changes.what'),
      kind: 'title',
      render: (one) => (
        <>
          <strong>{t(`jobs.changes.did.${one.what}`)}</strong>
          {one.what === 'created' && one.state === 'paused' && `, ${t('jobs.changes.bornPaused')}`}
          {one.what === 'edited' && <Edited revision={one.revision ?? 0} revisions={revisions} />}
        </>
      ),
    },
    { key: 'at', title: t('jobs.changes.at'), sorted: 'descending', render: (one) => <AbsoluteTime at={one.at} /> },
    { key: 'by', title: t('jobs.changes.by'), render: (one) => said(one.by, t) || <span className="muted">—</span> },
    { key: 'note', title: t('field.note'), render: (one) => (one.note ? <span className="any-wrap">{one.note}</span> : <span className="muted">—</span>) },
  ]
  return (
    <div className="stack">
      <section className="card flush" aria-label={t('jobs.changes.title')}>
        <ResourceTable
          label={t('jobs.changes.title')}
          columns={columns}
          rows={events.data?.items}
          rowKey={(one) => `${one.at} ${one.what} ${one.revision ?? ''} ${one.by} ${one.note ?? ''}`}
          error={events.error}
          onRetry={() => void events.refetch()}
          updatedAt={events.dataUpdatedAt}
          empty={<Blank title={t('jobs.changes.empty')} />}
          pager={<Pager cursor={cursor} nextCursor={events.data?.nextCursor} onGo={(next) => void navigate({ to: '/jobs/$jobId/changes', params: { jobId }, search: next ? { cursor: next } : {} })} />}
        />
      </section>
      <Changes kind="job" object={jobId} />
    </div>
  )
}

/** The fields of an edit. The oldest stored revision has nothing to compare with. */
function Edited({ revision, revisions }: { revision: number; revisions: Revision[] | undefined }) {
  const { t } = useTranslation()
  const label = t('jobs.changes.revision', { n: revision })
  const after = revisions?.find((one) => one.revision === revision)
  const before = revisions?.find((one) => one.revision === revision - 1)
  if (!after || !before) return <span className="muted"> · {label}</span>
  const diff = diffFields(before.spec, after.spec)
  if (diff.length === 0) return <span className="muted"> · {label}, {t('jobs.changes.same')}</span>
  return (
    <details>
      <summary>
        {label}, {t('jobs.changes.fields', { count: diff.length })}
      </summary>
      <FieldDiffTable label={label} diff={diff} />
    </details>
  )
}
