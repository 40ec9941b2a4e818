// One run: what happened, why, and its live log.
import './runs.css'
import { RedoOutlined, StopOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useParams } from '@tanstack/react-router'
import { Alert } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../api/endpoints'
import { explainQueries } from '../../api/explain'
import { isFinal, queries, queryClient, refreshJobs } from '../../api/queries'
import type { Explanation, RunDetail } from '../../api/types'
import { said } from '../../lib/said'
import { ActionButton } from '../../ui/ActionButton'
import { ConsideredInstances, ExplainSteps, ExplainSummary } from './Explain'
import { Fact } from '../../ui/Fact'
import { useCan, useShowError } from '../../ui/hooks'
import { JsonView } from '../../ui/input/JsonView'
import { LogView } from './log/LogView'
import { later } from '../../ui/later'
import { message } from '../../ui/notices'
import { Page } from '../../ui/Page'
import { RunShards } from './RunShards'
import { RunCompare } from './RunCompare'
import { PartsGantt, RunGantt } from './RunGantt'
import { RunStateChip } from '../../ui/StateChip'
import { ErrorState, PageSkeleton } from '../../ui/States'
import { AbsoluteTime, DurationText } from '../../ui/TimeText'
import { TextField } from '../../ui/TextField'
import { useConfirm } from '../../ui/useConfirm'
import { reasonText } from '../../lib/why'
import { RunDuration } from './RunTable'

const RetryDialog = later(() => import('./RetryDialog'))

export function RunPage() {
  const { runId } = useParams({ from: '/app/runs/$runId' })
  const run = useQuery(queries.run(runId))
  if (run.error && !run.data) return <ErrorState error={run.error} onRetry={() => void run.refetch()} />
  if (!run.data) return <PageSkeleton />
  return <Content key={runId} run={run.data} />
}

function Content({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const explain = useQuery(explainQueries.explainRun(run.id, run.state, run.lingers))
  return (
    <Page
      title={t('runs.detail.title', { id: run.id })}
      crumbs={
        <>
          <Link to="/jobs">{t('jobs.list.title')}</Link> ›{' '}
          <Link to="/jobs/$jobId" params={{ jobId: run.jobId }}>
            {run.jobName}
          </Link>{' '}
          ›{' '}
          <Link to="/jobs/$jobId/runs" params={{ jobId: run.jobId }}>
            {t('runs.list.title')}
          </Link>
        </>
      }
      heading={
        <span className="row">
          <span>{run.jobName}</span> <span className="mono muted">{run.id}</span> <RunStateChip state={run.state} fireAt={run.fireAt} lingers={run.lingers} big />
        </span>
      }
      actions={<RunActions run={run} />}
    >
      <div className="stack">
        {run.lingers && <Alert type="warning" showIcon title={t('runs.detail.lingersTitle')} description={t('runs.detail.lingersHelp')} />}
        <RunSentence run={run} explanation={explain.data} />
        <RunErrors run={run} />
        <RunProgress run={run} />
        <RunSnoozes run={run} />
        {run.stage && <RunShards run={run} />}
        <section className="card">
          <h2>{t('charts.gantt')}</h2>
          {run.stage ? <PartsGantt run={run} /> : <RunGantt run={run} />}
        </section>
        {!run.stage && hasBegun(run) && <LogView run={run} />}
        <RunCompare run={run} />
        <RunFacts run={run} />
        <section className="card">
          <h2>{t('explain.steps')}</h2>
          {explain.data ? (
            <ExplainSteps explanation={explain.data} />
          ) : explain.error ? (
            <ErrorState error={explain.error} onRetry={() => void explain.refetch()} />
          ) : (
            <span className="skeleton h-160 full" />
          )}
        </section>
        {!run.stage && !hasBegun(run) && <LogView run={run} />}
        <div className="grid-2">
          <section className="card">
            <h2>{t('explain.instances')}</h2>
            {explain.data && <ConsideredInstances instances={explain.data.instances} />}
          </section>
          <div className="stack">
            <section className="card">
              <h2>{t('runs.detail.input')}</h2>
              <JsonView value={run.input} label={t('runs.detail.input')} empty={t('jobs.detail.noInput')} />
            </section>
            <section className="card">
              <h2>{t('runs.detail.output')}</h2>
              <JsonView value={run.output} label={t('runs.detail.output')} empty={t('runs.detail.noOutput')} />
            </section>
            {run.steps && run.steps.length > 0 && <RunSteps steps={run.steps} />}
          </div>
        </div>
      </div>
    </Page>
  )
}

/** Whether the run may have a log: an attempt of it was sent to an instance. */
function hasBegun(run: RunDetail): boolean {
  return run.attempt > 0 && run.state !== 'offered'
}

/** The first sentence; the error has its own place below it. */
function RunSentence({ run, explanation }: { run: RunDetail; explanation: Explanation | undefined }) {
  const { t } = useTranslation()
  return (
    <section className="card" aria-label={t('explain.title')}>
      {explanation ? <ExplainSummary explanation={explanation} error={run.error} /> : <p className="explain-summary">{reasonText(run, t) || <>&nbsp;</>}</p>}
    </section>
  )
}

function RunFacts({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  return (
    <section className="card" aria-label={t('runs.detail.facts')}>
      <dl className="facts">
        <Fact label={t('runs.list.fireAt')}>
          <AbsoluteTime at={run.fireAt} ms />
        </Fact>
        <Fact label={t('runs.detail.triggeredBy')}>
          {t(`runs.cause.${run.cause}`)}
          <Requester by={run.requestedBy} />
        </Fact>
        <Fact label={t('runs.list.lateness')}>
          <DurationText ms={run.latenessMs} />
        </Fact>
        <Fact label={t('runs.list.duration')}>
          <RunDuration run={run} />
        </Fact>
        <Fact label={t('runs.list.attempt')}>
          <span className="num">
            {run.attempt === 0 ? '—' : `${run.attempt}/${run.maxAttempts}`}
          </span>
        </Fact>
        {run.failedSends > 0 && (
          <Fact label={t('runs.detail.failedSends')}>
            <span className="num">{run.failedSends}</span>
          </Fact>
        )}
        <Fact label={t('runs.list.executor')}>
          <Link to="/executors/$executorId" params={{ executorId: run.executor.id }}>
            {run.executor.name}
          </Link>{' '}
          <span className="mono muted">{run.handler}</span>
        </Fact>
        <Fact label={t('runs.list.instance')}>
          {run.instance ? (
            <Link to="/runs" search={{ instanceId: run.instance.id }} className="mono">
              {run.instance.name}
            </Link>
          ) : (
            '—'
          )}
        </Fact>
        <Fact label={t('runs.detail.revision')}>
          <Link to="/jobs/$jobId/changes" params={{ jobId: run.jobId }} className="num">
            {run.jobRevision}
          </Link>
        </Fact>
        {run.returnedAt && (
          <Fact label={t('runs.detail.returnedAt')}>
            <AbsoluteTime at={run.returnedAt} ms />
          </Fact>
        )}
        {run.parentId && (
          <Fact label={t('runs.shards.part')}>
            {run.shard ? t('runs.shards.nth', { index: run.shard.index, total: run.shard.total }) : t(run.part === 'before' ? 'runs.shards.before' : 'runs.shards.after')}{' '}
            <Link to="/runs/$runId" params={{ runId: run.parentId }} className="mono">
              {run.parentId}
            </Link>
          </Fact>
        )}
        {run.traceId && (
          <Fact label={t('runs.detail.trace')}>
            <span className="mono any-wrap">
              {run.traceId}
            </span>
          </Fact>
        )}
        {run.message && !run.stage && !run.error?.includes(run.message) && <Fact label={t('runs.detail.why')}>{said(run.message, t)}</Fact>}
        {run.note && <Fact label={t('field.note')}>{run.note}</Fact>}
        {run.notBefore && run.notBefore > run.fireAt && (run.state === 'due' || run.state === 'retry_wait') && (
          <Fact label={t('runs.detail.notBefore')}>
            <AbsoluteTime at={run.notBefore} />
          </Fact>
        )}
        {run.deadlineAt && !isFinal(run.state) && (
          <Fact label={t('runs.detail.deadline')}>
            <AbsoluteTime at={run.deadlineAt} />
          </Fact>
        )}
      </dl>
    </section>
  )
}

/** A person, a key, or the run that this one follows. */
function Requester({ by }: { by: string | undefined }) {
  if (!by) return null
  const run = /^run:(\d+)$/.exec(by)?.[1]
  return (
    <span className="muted">
      {' '}
      ·{' '}
      {run ? (
        <Link to="/runs/$runId" params={{ runId: run }} className="mono">
          {run}
        </Link>
      ) : (
        by
      )}
    </span>
  )
}

/** What the handler tells of how far it is. */
function RunProgress({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  if (!run.progress) return null
  const { percent, message, updatedAt } = run.progress
  return (
    <section className="card" aria-label={t('runs.detail.progress')}>
      <h2>{t('runs.detail.progress')}</h2>
      <p className="row no-wrap">
        <progress className="progress" max={100} value={percent} aria-label={t('runs.detail.progress')} /> <span className="num">{percent} %</span>
      </p>
      <p className="muted">
        <span className="any-wrap">{message}</span> · <AbsoluteTime at={updatedAt} />
      </p>
    </section>
  )
}

/** Parts of the handler that later attempts do not do again. */
function RunSteps({ steps }: { steps: NonNullable<RunDetail['steps']> }) {
  const { t } = useTranslation()
  return (
    <section className="card">
      <h2>{t('runs.detail.steps')}</h2>
      <p className="muted small">{t('runs.detail.stepsHelp')}</p>
      {steps.map((step) => (
        <details key={step.name}>
          <summary>
            <span className="mono">{step.name}</span> <span className="muted"> · </span>
            <AbsoluteTime at={step.storedAt} />
          </summary>
          <JsonView value={step.output} label={step.name} empty={t('runs.detail.noOutput')} />
        </details>
      ))}
    </section>
  )
}

/** The error kind of an attempt whose handler asked for the run again later; it has not failed. */
const SNOOZED = 'snoozed'
const SNOOZES_SHOWN = 3

export function RunSnoozes({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const snoozed = run.attempts.filter((one) => one.errorKind === SNOOZED)
  if (snoozed.length === 0) return null
  return (
    <section className="card">
      <h2>{t('runs.detail.snoozes')}</h2>
      <p className="muted small">{t('runs.detail.snoozesHelp')}</p>
      <details open={snoozed.length <= SNOOZES_SHOWN}>
        <summary>{t('runs.detail.snoozedAttempts', { count: snoozed.length })}</summary>
        <ul className="plain-list">
          {snoozed.map((attempt) => (
            <li key={attempt.fence}>
              <span>
                {t('runs.detail.attempt', { n: attempt.number })}
                {attempt.instance && <span className="muted"> · {attempt.instance.name}</span>}
              </span>
              <span className="mono">{said(attempt.error, t)}</span>
            </li>
          ))}
        </ul>
      </details>
    </section>
  )
}

/** The errors of all attempts; the last one stands open. */
export function RunErrors({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const broken = run.attempts.filter((one) => (one.error || one.stack) && one.errorKind !== SNOOZED)
  if (broken.length === 0) {
    return run.error && run.errorKind !== SNOOZED && run.reason !== SNOOZED ? <Alert type="error" showIcon title={t('runs.detail.error')} description={<span className="any-wrap">{said(run.error, t)}</span>} /> : null
  }
  return (
    <section className="card stack gap-2">
      <h2>{t('runs.detail.error')}</h2>
      {broken.map((attempt, i) => (
        <details key={attempt.fence} open={i === broken.length - 1}>
          <summary>
            {t('runs.detail.attempt', { n: attempt.number })} · <RunStateChip state={attempt.state} />{' '}
            {attempt.number >= run.maxAttempts && <span className="muted">{t('runs.detail.notRetried', { count: run.maxAttempts })}</span>}
            {attempt.instance && <span className="muted"> · {attempt.instance.name}</span>}
          </summary>
          <pre className="code-block wrap above-1" tabIndex={0} role="region" aria-label={t('runs.detail.error')}>
            {said(attempt.error, t)}
          </pre>
          {attempt.stack && (
            <details className="above-1">
              <summary>{t('runs.detail.showStack')}</summary>
              <pre className="code-block" tabIndex={0} role="region" aria-label={t('runs.detail.stack')}>
                {attempt.stack}
              </pre>
            </details>
          )}
        </details>
      ))}
    </section>
  )
}

function RunActions({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const confirm = useConfirm()
  const showError = useShowError()
  const allowed = useCan('operator')
  const [retrying, setRetrying] = useState(false)
  if (!allowed) return null
  const cancel = () => {
    let reason = ''
    confirm({
      title: t('runs.detail.cancelTitle'),
      content: (
        <div className="stack">
          <p>{t('runs.detail.cancelHelp')}</p>
          <TextField label={t('runs.detail.cancelReason')} maxLength={500} onChange={(text) => (reason = text)} />
        </div>
      ),
      okText: t('runs.detail.cancel'),
      okButtonProps: { danger: true },
      cancelText: t('runs.detail.keepRunning'),
      onOk: async () => {
        try {
          await api.cancelRun(run.id, reason.trim())
          message.success(t('runs.detail.cancelAsked'))
          void queryClient.invalidateQueries({ queryKey: ['run', run.id] })
          refreshJobs()
        } catch (err) {
          showError(err)
        }
      },
    })
  }
  return (
    <>
      {!isFinal(run.state) && (
        <ActionButton danger icon={<StopOutlined />} onClick={cancel} disabled={run.state === 'cancelling'}>
          {t('runs.detail.cancel')}
        </ActionButton>
      )}
      {isFinal(run.state) && (
        <ActionButton icon={<RedoOutlined />} onClick={() => setRetrying(true)}>
          {t('runs.detail.retry')}
        </ActionButton>
      )}
      {retrying && <RetryDialog run={run} onClose={() => setRetrying(false)} />}
    </>
  )
}
