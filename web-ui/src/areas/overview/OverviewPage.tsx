// Is anything wrong, is anything late, what comes next: on one screen.
import { CheckCircleOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../api/endpoints'
import { queries, refreshJobs } from '../../api/queries'
import { statisticQueries } from '../../api/statistics'
import type { AttentionItem, Overview, Statistics } from '../../api/types'
import { Band } from '../../charts/Band'
import { stepsOf } from '../../charts/bandGeometry'
import { FailureShare, HourBars } from '../../charts/HourBars'
import { randomKey } from '../../lib/misc'
import { saidIn } from '../../lib/said'
import { ActionButton } from '../../ui/ActionButton'
import { useCan, useLang, useShowError } from '../../ui/hooks'
import { Page } from '../../ui/Page'
import { StateIcon } from '../../ui/StateIcon'
import { Blank, ErrorState, PageSkeleton } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { useZone } from '../../ui/timeStyle'

export function OverviewPage() {
  const { t } = useTranslation()
  const overview = useQuery(queries.overview())
  return (
    <Page title={t('overview.title')}>
      {overview.data ? (
        <Content data={overview.data} />
      ) : overview.error ? (
        <ErrorState error={overview.error} onRetry={() => void overview.refetch()} />
      ) : (
        <PageSkeleton />
      )}
    </Page>
  )
}

function Content({ data }: { data: Overview }) {
  const { t } = useTranslation()
  // Who may see it.
  const operates = useCan('operator')
  const fresh = data.jobs.enabled + data.jobs.paused === 0
  return (
    <div className="stack">
      {fresh && <FirstSteps data={data} />}
      <div>
        <Tiles data={data} />
        <p className="muted small above-1">
          {t('overview.tilesCount')} {operates && <Link to="/timers">{t('overview.timersList')}</Link>}
        </p>
      </div>
      <Attention items={data.attention} />
      <Overdue />
      <Day />
      <NextFires fires={data.nextFires.slice(0, FIRES_SHOWN)} />
    </div>
  )
}

/** How runs have ended by hour, and how late they began; nothing until there are some. */
function Day() {
  const { t } = useTranslation()
  const zone = useZone()
  const navigate = useNavigate()
  const { data } = useQuery(statisticQueries.day())
  if (!data || data.items.length === 0) return null
  const broken = data.total.failed + data.total.timedOut + data.total.lost > 0
  const open = (from: string, to: string) => void navigate({ to: '/runs', search: { from, to } })
  return (
    <>
      <section className="card">
        <div className="card-head">
          <h2>{t('timers.stats.spans.day')}</h2>
          <FailureShare total={data.total} />
        </div>
        <p className="muted small">
          {t('overview.chartCounts')} {broken && <Link to="/runs" search={{ cause: 'timer', state: 'failed,timed_out,lost', range: '24h' }}>{t('overview.failedTimers')}</Link>}
        </p>
        <HourBars data={data} label={t('charts.ended')} zone={zone} onOpen={open} onSelect={open} />
      </section>
      <Lateness data={data} onOpen={open} />
    </>
  )
}

/** The goal of docs/observability/alerts.yml: p99 of the start delay stays below it. */
const LATENESS_GOAL_MS = 1_000

function Lateness({ data, onOpen }: { data: Statistics; onOpen: (from: string, to: string) => void }) {
  const { t } = useTranslation()
  const zone = useZone()
  const steps = stepsOf(data, 'lateness')
  if (steps.length === 0) return null
  return (
    <section className="card">
      <h2>{t('charts.lateness')}</h2>
      <p className="muted small">{t('charts.latenessHelp')}</p>
      <Band
        label={t('charts.lateness')}
        steps={steps}
        from={Date.parse(data.from)}
        to={Date.parse(data.to)}
        zone={zone}
        height={140}
        bound={{ ms: LATENESS_GOAL_MS, name: t('charts.latenessBound') }}
        onOpen={(_, step) => step && onOpen(new Date(step.from).toISOString(), new Date(step.to).toISOString())}
      />
    </section>
  )
}

const OVERDUE_SHOWN = 5
const FIRES_SHOWN = 8

/** What has passed and has not started; nothing when there is none. */
function Overdue() {
  const { t } = useTranslation()
  const { data } = useQuery(statisticQueries.overdue())
  if (!data || data.items.length === 0) return null
  return (
    <section className="card">
      <h2>
        {t('overview.overdue')} <span className="st-timeout num">{`${data.items.length}${data.more ? '+' : ''}`}</span>
      </h2>
      <p className="muted small">{t('overview.overdueHelp')}</p>
      <ul className="plain-list">
        {data.items.slice(0, OVERDUE_SHOWN).map((one) => (
          <li key={`${one.jobId}-${one.fireAt}-${one.runId ?? ''}`}>
            {one.runId ? (
              <Link to="/runs/$runId" params={{ runId: one.runId }} className="clip">
                {one.jobName}
              </Link>
            ) : (
              <Link to="/jobs/$jobId" params={{ jobId: one.jobId }} className="clip">
                {one.jobName}
              </Link>
            )}
            <RelativeTime at={one.fireAt} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function Tiles({ data }: { data: Overview }) {
  const { t } = useTranslation()
  const runs = data.runs24h
  const bad = runs.failed + runs.timedOut + runs.lost
  const all = runs.succeeded + bad
  const percent = all === 0 ? '—' : `${(Math.floor((runs.succeeded / all) * 1000) / 10).toFixed(all === runs.succeeded ? 0 : 1)} %`
  return (
    <div className="tiles">
      <Link className="tile" to="/runs" search={{ state: 'succeeded', range: '24h' }}>
        <div className="muted">{t('overview.success')}</div>
        <div className="tile-value st-success">{percent}</div>
        <div className="muted small">{all === 0 ? t('overview.noFinished') : t('overview.successOf', { ok: runs.succeeded.toLocaleString(), all: all.toLocaleString() })}</div>
      </Link>
      <Link className="tile" to="/runs" search={{ state: 'due,offered,running,cancelling,retry_wait' }}>
        <div className="muted">{t('overview.running')}</div>
        <div className="tile-value st-running">{runs.running.toLocaleString()}</div>
        <div className="muted small">{t('overview.due', { count: runs.due })}</div>
      </Link>
      <Link className="tile" to="/runs" search={{ state: 'failed,timed_out,lost', range: '24h' }}>
        <div className="muted">{t('overview.failed')}</div>
        <div className={`tile-value${bad > 0 ? ' st-failed' : ''}`}>{bad.toLocaleString()}</div>
        <div className="muted small">{t('overview.failedParts', { failed: runs.failed, timedOut: runs.timedOut, lost: runs.lost })}</div>
      </Link>
      <Link className="tile" to="/runs" search={{ state: 'missed', range: '24h' }}>
        <div className="muted">{t('overview.missed')}</div>
        <div className={`tile-value${runs.missed > 0 ? ' st-skipped' : ''}`}>{runs.missed.toLocaleString()}</div>
        <div className="muted small">{runs.excluded > 0 ? t('overview.excluded', { count: runs.excluded }) : t('overview.missedHelp')}</div>
      </Link>
      <Link className="tile" to="/jobs" search={{}}>
        <div className="muted">{t('overview.jobs')}</div>
        <div className="tile-value">{data.jobs.enabled.toLocaleString()}</div>
        <div className="muted small">{t('overview.paused', { count: data.jobs.paused })}</div>
      </Link>
      <Link className="tile" to="/executors">
        <div className="muted">{t('overview.executors')}</div>
        <div className="tile-value">{data.executors.online.toLocaleString()}</div>
        <div className={`small ${data.executors.offline > 0 ? 'st-lost' : 'muted'}`}>{t('overview.offline', { count: data.executors.offline })}</div>
      </Link>
    </div>
  )
}

function Attention({ items }: { items: AttentionItem[] }) {
  const { t } = useTranslation()
  return (
    <section className="card">
      <h2>{t('overview.attention')}</h2>
      {items.length === 0 ? (
        <Blank icon={<CheckCircleOutlined />} title={t('overview.calm')} />
      ) : (
        <ul className="plain-list">
          {items.map((item) => (
            <li key={`${item.kind}-${item.jobId ?? item.executorId ?? item.text.en}`}>
              <AttentionLine item={item} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function AttentionLine({ item }: { item: AttentionItem }) {
  const { t } = useTranslation()
  const text = saidIn(item.text[useLang()], t)
  const mark = (
    <span className="st-timeout">
      <StateIcon name="warning" />{' '}
    </span>
  )
  if (item.jobId) {
    return (
      <Link to="/jobs/$jobId" params={{ jobId: item.jobId }}>
        {mark}
        {text}
      </Link>
    )
  }
  if (item.executorId) {
    return (
      <Link to="/executors/$executorId" params={{ executorId: item.executorId }}>
        {mark}
        {text}
      </Link>
    )
  }
  if (item.kind === 'alerts_reach_nobody') {
    return (
      <Link to="/settings/notifications/rules">
        {mark}
        {text}
      </Link>
    )
  }
  return (
    <span>
      {mark}
      {text}
    </span>
  )
}

function NextFires({ fires }: { fires: Overview['nextFires'] }) {
  const { t } = useTranslation()
  return (
    <section className="card">
      <h2>{t('overview.nextFires')}</h2>
      {fires.length === 0 ? (
        <p className="muted">{t('overview.noFires')}</p>
      ) : (
        <ul className="plain-list">
          {fires.map((fire) => (
            <li key={`${fire.jobId}-${fire.at}`}>
              <Link to="/jobs/$jobId" params={{ jobId: fire.jobId }} className="clip">
                {fire.jobName}
              </Link>
              <RelativeTime at={fire.at} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** The way from an empty system to the first run; each step from real data. */
function FirstSteps({ data }: { data: Overview }) {
  const { t } = useTranslation()
  const edits = useCan('editor')
  const connected = data.executors.online > 0
  return (
    <section className="card">
      <h2>{t('overview.startTitle')}</h2>
      {edits && <SampleRun />}
      <ol className="list-indent grid gap-1">
        <li>
          {connected && (
            <span className="st-success">
              <StateIcon name="check" />{' '}
            </span>
          )}
          <Link to="/executors">{t('overview.start1')}</Link>
        </li>
        <li>
          <Link to="/jobs/new">{t('overview.start2')}</Link>
        </li>
        <li>{t('overview.start3')}</li>
      </ol>
    </section>
  )
}

/** A first run without an application: the server has a handler for it. */
function SampleRun() {
  const { t } = useTranslation()
  const showError = useShowError()
  const navigate = useNavigate()
  const [busy, setBusy] = useState(false)
  const start = async () => {
    setBusy(true)
    try {
      const { executorId, handlers } = await api.startSamples()
      const job = await api.createJob({ name: 'hello', description: t('overview.sampleJob'), executor: { id: executorId }, handler: handlers[0] ?? '', logLevel: 'INFO', schedule: { kind: 'none', zone: 'UTC' } })
      const run = await api.runJob(job.id, {}, randomKey())
      refreshJobs()
      await navigate({ to: '/runs/$runId', params: { runId: run.id } })
    } catch (err) {
      showError(err)
      setBusy(false)
    }
  }
  return (
    <p className="row">
      <ActionButton type="primary" loading={busy} onClick={() => void start()}>
        {t('overview.sample')}
      </ActionButton>
      <span className="muted">{t('overview.sampleHelp')}</span>
    </p>
  )
}
