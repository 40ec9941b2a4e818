// A job at a moment: why did it run, or not? The moment is in the address, so
// the answer can be sent as a link.
import './jobs.css'
import { LeftOutlined, RightOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate } from '@tanstack/react-router'
import { Button, Drawer } from 'antd'
import dayjs, { type Dayjs } from 'dayjs'
import { lazy, Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { explainQueries } from '../../api/explain'
import { queries } from '../../api/queries'
import type { Explanation, Job, Run } from '../../api/types'
import { ConsideredInstances, ExplainSteps, ExplainSummary } from '../runs/Explain'
import { said } from '../../lib/said'
import { useReturnFocus } from '../../ui/Dialog'
import { LinkButton } from '../../ui/LinkButton'
import { RunStateChip } from '../../ui/StateChip'
import { Blank, ErrorState } from '../../ui/States'
import { loadChunk } from '../../lib/chunk'
import { serverNow } from '../../lib/connection'
import { newestFirst } from '../../lib/search'
import { formatWithZone, instantToWall, localZone, wallToInstant } from '../../lib/time'

const WallPicker = lazy(() => loadChunk(() => import('../../ui/WallPicker')))

/** Among these is one whose time has come: rows are written a few seconds ahead. */
const RECENT = 20

/** The moment of the question: an instant, or the last run of any cause. */
export default function JobWhy({ job, at: asked }: { job: Job; at: string }) {
  const { t } = useTranslation()
  const go = useGo()
  const last = useLastRun(job.id)
  const run = asked === 'last' ? last : undefined
  const at = asked === 'last' ? run?.fireAt : asked
  // A run by hand has no fire time of the schedule: it is explained itself.
  const byItself = run && run.cause !== 'schedule'
  const ofFire = useQuery({ ...explainQueries.explainFire(job.id, at ?? ''), enabled: Boolean(at) && !byItself })
  const ofRun = useQuery({ ...explainQueries.explainRun(run?.id ?? '', run?.state ?? 'due', run?.lingers), enabled: Boolean(byItself) })
  const explain = byItself ? ofRun : ofFire
  const { zone } = job.schedule
  useReturnFocus()
  return (
    <Drawer open size="large" onClose={() => go(undefined)} title={t('why.title')}>
      <div className="stack">
        <p className="muted">{t('why.help')}</p>
        <Chooser key={at ?? ''} job={job} at={at} ran={Boolean(last)} />
        {asked === 'last' && last === undefined ? (
          <span className="skeleton why-wait" />
        ) : !at ? (
          <Blank title={t('why.none')} help={t('why.noneHelp')} />
        ) : (
          <section className="stack" aria-live="polite">
            <div className="card-head why-head">
              <h2>
                <time dateTime={at}>{formatWithZone(at, zone, true)}</time>
                {zone !== localZone && <span className="muted small"> · {formatWithZone(at, localZone, true)}</span>}
              </h2>
              <Neighbours explanation={explain.isPlaceholderData ? undefined : explain.data} />
            </div>
            {explain.data && !explain.isPlaceholderData ? (
              <Answer explanation={explain.data} />
            ) : explain.error ? (
              <ErrorState error={explain.error} onRetry={() => void explain.refetch()} />
            ) : (
              <span className="skeleton why-wait" />
            )}
          </section>
        )}
      </div>
    </Drawer>
  )
}

/** The moment is in the address, so that a link shows the same answer. */
function useGo() {
  const navigate = useNavigate()
  return (at: string | undefined) => void navigate({ to: '.', search: (was: object) => ({ ...was, why: at }) })
}

/** undefined: it is not known yet; null: there is none. */
function useLastRun(jobId: string): Run | null | undefined {
  const runs = useQuery(queries.runs({ jobId, limit: RECENT }))
  if (runs.error) return null
  return runs.data && lastRunOf(runs.data.items, serverNow())
}

/** The run with the newest fire time that has come; null: there is none. */
export function lastRunOf(runs: Run[], now: number): Run | null {
  return newestFirst(runs).find((one) => Date.parse(one.fireAt) <= now) ?? null
}

/** A wall time in the job's zone, and the two moments that people mean most often. */
function Chooser({ job, at, ran }: { job: Job; at: string | undefined; ran: boolean }) {
  const { t } = useTranslation()
  const go = useGo()
  const { zone } = job.schedule
  const [wall, setWall] = useState<Dayjs | null>(() => (at ? dayjs(instantToWall(at, zone)) : null))
  return (
    <form
      className="filters why-form"
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
      {ran && <Button onClick={() => go('last')}>{t('why.lastRun')}</Button>}
      {job.nextFireAt && <Button onClick={() => job.nextFireAt && go(job.nextFireAt)}>{t('why.nextFire')}</Button>}
    </form>
  )
}

function Neighbours({ explanation }: { explanation: Explanation | undefined }) {
  const { t } = useTranslation()
  const one = (to: string | null | undefined, text: string, icon: 'left' | 'right') =>
    to ? (
      <LinkButton to="." search={(was: object) => ({ ...was, why: to })} size="small" icon={icon === 'left' ? <LeftOutlined /> : <RightOutlined />} iconPlacement={icon === 'left' ? 'start' : 'end'}>
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
          <p className="row below-1">
            <RunStateChip state={run.state} fireAt={run.fireAt} lingers={run.lingers} big />
            <Link to="/runs/$runId" params={{ runId: run.id }}>
              {t('why.openRun')} <span className="mono">{run.id}</span>
            </Link>
          </p>
        )}
        <ExplainSummary explanation={explanation} />
        {run?.message && <p className="muted">{said(run.message, t)}</p>}
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
