// The backfills of a job above its runs, with their progress.
import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../../api/useQuery'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { backfillApi, backfillQueries } from './backfills'
import { queries, queryClient, refreshJobs } from '../../../api/queries'
import type { Backfill } from '../../../api/types'
import { said } from '../../../lib/said'
import { ActionButton } from '../../../ui/ActionButton'
import { useCan } from '../../../ui/hooks'
import { ByWhom } from '../../../ui/ByWhom'
import { later } from '../../../ui/later'
import { ResourceTable, type Column } from '../../../ui/ResourceTable'
import { BackfillStateChip } from '../../../ui/StateChip'
import { useDanger } from '../../../ui/useDanger'
import { Meter } from '../../../ui/Meter'
import { formatWall } from '../../calendars/calendar'

const BackfillDialog = later(() => import('./BackfillDialog'))

/** Absent while there is no backfill and the person may start none. */
export function JobBackfills({ jobId }: { jobId: string }) {
  const { t } = useTranslation()
  const job = useQuery(queries.job(jobId)).data
  const backfills = useQuery(backfillQueries.backfills(jobId))
  const canRun = useCan('operator')
  const [asking, setAsking] = useState(false)
  const columns = useColumns(job?.schedule.zone ?? 'UTC', canRun)
  if (!job) return null
  const some = (backfills.data?.items.length ?? 0) > 0
  const create = canRun && job.schedule.kind !== 'none' && (
    <ActionButton icon={<PlusOutlined />} onClick={() => setAsking(true)}>
      {t('backfill.create')}
    </ActionButton>
  )
  if (!some && !create && !backfills.error) return null
  return (
    <>
      <section className="card flush spaced" aria-label={t('backfill.title')}>
        <div className="card-head">
          <div>
            <h2>{t('backfill.title')}</h2>
            <p className="muted">{t('backfill.help')}</p>
          </div>
          {create}
        </div>
        {(some || backfills.error) && (
          <ResourceTable
            label={t('backfill.title')}
            columns={columns}
            rows={backfills.data?.items}
            rowKey={(one) => one.id ?? one.from}
            error={backfills.error}
            onRetry={() => void backfills.refetch()}
            updatedAt={backfills.dataUpdatedAt}
            empty={null}
          />
        )}
      </section>
      {asking && <BackfillDialog job={job} onClose={() => setAsking(false)} />}
    </>
  )
}

function useColumns(zone: string, canRun: boolean): Column<Backfill>[] {
  const { t } = useTranslation()
  const columns: Column<Backfill>[] = [
    {
      key: 'range',
      title: t('backfill.range'),
      kind: 'title',
      render: (one) => (
        <div>
          <span className="num">
            {formatWall(one.from, zone)} – {formatWall(one.to, zone)}
          </span>{' '}
          <span className="muted small">{zone}</span>
          <div className="muted small">
            {t(`backfill.scope_${one.scope}`)}
            {one.note && ` · ${one.note}`}
          </div>
        </div>
      ),
    },
    {
      key: 'state',
      title: t('backfill.state'),
      render: (one) => (
        <div>
          <BackfillStateChip state={one.state} />
          {one.message && <div className="muted small">{said(one.message, t)}</div>}
        </div>
      ),
    },
    { key: 'progress', title: t('backfill.progress'), render: (one) => <Progress backfill={one} /> },
    {
      key: 'by',
      title: t('backfill.by'),
      render: (one) => <ByWhom who={one.createdBy} at={one.createdAt} />,
    },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <span className="row">
          <Link to="/jobs/$jobId/runs" params={{ jobId: one.jobId }} search={{ cause: 'backfill', from: one.from, to: one.to }}>
            {t('backfill.runs')}
          </Link>
          {canRun && one.state === 'running' && <Cancel backfill={one} />}
        </span>
      ),
    },
  ]
  return columns
}

function Progress({ backfill }: { backfill: Backfill }) {
  const { t } = useTranslation()
  const { planned, created, skipped, succeeded, failed, running } = backfill
  const done = created + skipped
  const share = planned > 0 ? Math.min(100, (done / planned) * 100) : 100
  return (
    <div>
      <span className="row tight no-wrap">
        <Meter share={share} />
        <span className="small">{t('backfill.progressOf', { done, all: planned })}</span>
      </span>
      <div className="muted small">{t('backfill.counts', { succeeded, failed, running, skipped })}</div>
    </div>
  )
}

function Cancel({ backfill }: { backfill: Backfill }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const cancel = () =>
    danger({
      title: t('backfill.cancelTitle'),
      content: t('backfill.cancelHelp'),
      action: t('backfill.cancel'),
      cancel: t('action.back'),
      work: () => backfillApi.cancelBackfill(backfill.id ?? ''),
      done: t('backfill.cancelled'),
      after: () => {
        void queryClient.invalidateQueries({ queryKey: ['job', backfill.jobId, 'backfills'] })
        refreshJobs()
      },
    })
  return (
    <ActionButton size="small" danger onClick={cancel}>
      {t('backfill.cancel')}
    </ActionButton>
  )
}
