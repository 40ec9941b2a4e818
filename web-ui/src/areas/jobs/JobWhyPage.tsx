// A job at a moment: why did it run, or not? The moment is in the address, so
// the answer can be sent as a link.
import { LeftOutlined, RightOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Button } from 'antd'
import dayjs, { type Dayjs } from 'dayjs'
import { lazy, Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { explainQueries } from '../../api/explain'
import { queries } from '../../api/queries'
import type { Explanation, Job } from '../../api/types'
import { ConsideredInstances, ExplainSteps, ExplainSummary } from '../runs/Explain'
import { LinkButton } from '../../ui/LinkButton'
import { RunStateChip } from '../../ui/StateChip'
import { Blank, ErrorState } from '../../ui/States'
import { loadChunk } from '../../lib/chunk'
import { serverNow } from '../../lib/connection'
import { formatWithZone, instantToWall, localZone, wallToInstant } from '../../lib/time'

const WallPicker = lazy(() => loadChunk(() => import('../../ui/WallPicker')))

/** Among these is one whose time has come: rows are written a few seconds ahead. */
const RECENT = 20

export function JobWhyTab() {
  const { jobId } = useParams({ from: '/app/jobs/$jobId' })
  const { at } = useSearch({ from: '/app/jobs/$jobId/why' })
  const { t } = useTranslation()
  const job = useQuery(queries.job(jobId)).data
  const explain = useQuery({ ...explainQueries.explainFire(jobId, at ?? ''), enabled: Boolean(at) })
  if (!job) return null
  const { zone } = job.schedule
  return (
    <div className="stack">
      <section className="card" aria-label={t('why.title')}>
        <h2>{t('why.title')}</h2>
        <p className="muted" style={{ marginBottom: 12 }}>
          {t('why.help')}
        </p>
        <Chooser key={at ?? ''} job={job} at={at} />
      </section>
      {!at ? (
        <Blank title={t('why.none')} help={t('why.noneHelp')} />
      ) : (
        <section className="card stack" aria-live="polite">
          <div className="card-head" style={{ margin: 0 }}>
            <h2>
              <time dateTime={at}>{formatWithZone(at, zone, true)}</time>
              {zone !== localZone && <span className="muted small"> · {formatWithZone(at, localZone, true)}</span>}
            </h2>
            <Neighbours jobId={jobId} explanation={explain.isPlaceholderData ? undefined : explain.data} />
          </div>
          {explain.data && !explain.isPlaceholderData ? (
            <Answer explanation={explain.data} />
          ) : explain.error ? (
            <ErrorState error={explain.error} onRetry={() => void explain.refetch()} />
          ) : (
            <span className="skeleton" style={{ height: 80, width: '100%' }} />
          )}
        </section>
      )}
    </div>
  )
}

/** A wall time in the job's zone, and the two moments that people mean most often. */
function Chooser({ job, at }: { job: Job; at: string | undefined }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { zone } = job.schedule
  // A run by hand has no fire time of the schedule: its own page explains it.
  const runs = useQuery(queries.runs({ jobId: job.id, cause: 'schedule', limit: RECENT }))
  const last = runs.data?.items.find((one) => Date.parse(one.fireAt) <= serverNow())
  const [wall, setWall] = useState<Dayjs | null>(() => (at ? dayjs(instantToWall(at, zone)) : null))
  const go = (instant: string) => void navigate({ to: '/jobs/$jobId/why', params: { jobId: job.id }, search: { at: instant } })
  return (
    <form
      className="filters"
      style={{ margin: 0 }}
      onSubmit={(event) => {
        event.preventDefault()
        if (wall) go(wallToInstant(wall.format('YYYY-MM-DDTHH:mm:ss'), zone))
      }}
    >
      <span className="f-search">
        <label htmlFor="why-at" className="sr-only">
          {t('why.instant')}
        </label>
        <Suspense fallback={<span className="skeleton" />}>
          <WallPicker id="why-at" value={wall} onChange={setWall} />
        </Suspense>
      </span>
      <Button type="primary" htmlType="submit" disabled={!wall}>
        {t('why.ask')}
      </Button>
      <span className="muted small">{t('why.inZone', { zone })}</span>
      <span className="grow" />
      {last && <Button onClick={() => go(last.fireAt)}>{t('why.lastRun')}</Button>}
      {job.nextFireAt && <Button onClick={() => job.nextFireAt && go(job.nextFireAt)}>{t('why.nextFire')}</Button>}
    </form>
  )
}

function Neighbours({ jobId, explanation }: { jobId: string; explanation: Explanation | undefined }) {
  const { t } = useTranslation()
  const one = (to: string | null | undefined, text: string, icon: 'left' | 'right') =>
    to ? (
      <LinkButton to="/jobs/$jobId/why" params={{ jobId }} search={{ at: to }} size="small" icon={icon === 'left' ? <LeftOutlined /> : <RightOutlined />} iconPlacement={icon === 'left' ? 'start' : 'end'}>
        {text}
      </LinkButton>
    ) : null
  return (
    <span className="row tight">
      {one(explanation?.before, t('why.before'), 'left')}
      {one(explanation?.after, t('why.after'), 'right')}
    </span>
  )
}

function Answer({ explanation }: { explanation: Explanation }) {
  const { t } = useTranslation()
  const { run } = explanation
  return (
    <>
      <div>
        {run && (
          <p className="row" style={{ marginBottom: 6 }}>
            <RunStateChip state={run.state} fireAt={run.fireAt} lingers={run.lingers} big />
            <Link to="/runs/$runId" params={{ runId: run.id }}>
              {t('why.openRun')} <span className="mono">{run.id}</span>
            </Link>
          </p>
        )}
        <ExplainSummary explanation={explanation} />
        {run?.message && <p className="muted">{run.message}</p>}
      </div>
      {run && (
        <>
          <div>
            <h3>{t('explain.steps')}</h3>
            <ExplainSteps explanation={explanation} />
          </div>
          <div>
            <h3>{t('explain.instances')}</h3>
            <ConsideredInstances instances={explanation.instances} />
          </div>
        </>
      )}
    </>
  )
}
