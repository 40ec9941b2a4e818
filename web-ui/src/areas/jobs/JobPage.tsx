// One job: its settings, its next fires, its runs.
import './jobs.css'
import { EditOutlined, QuestionCircleOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, Outlet, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Alert } from 'antd'
import { useTranslation } from 'react-i18next'
import { scriptQueries } from '../integrations/scripts'
import { queries } from '../../api/queries'
import type { Callback, Job } from '../../api/types'
import { DeclaredNote } from './change/DeclaredNote'
import { said } from '../../lib/said'
import { Fact } from '../../ui/Fact'
import { FireList } from './FireList'
import { useCan } from '../../ui/hooks'
import { JobActions } from './jobActions'
import { NextFire } from './jobCells'
import { JobVerdict } from './JobVerdict'
import { JsonView } from '../../ui/input/JsonView'
import { later } from '../../ui/later'
import { LinkButton } from '../../ui/LinkButton'
import { PausedBy } from './PausedBy'
import { Page } from '../../ui/Page'
import { ScheduleText } from './ScheduleText'
import { JobStateChip, OnlineCount } from '../../ui/StateChip'
import { ErrorState, PageSkeleton } from '../../ui/States'
import { Tabs } from '../../ui/Tabs'
import { AbsoluteTime, RelativeTime } from '../../ui/TimeText'
import { callbackJob, callbackText } from './form/callback'
import { wireDuration } from '../../lib/duration'
import { MISFIRE } from './jobWords'
import { JobDurations, JobRecent, JobWeek } from './JobPictures'
import { JobErrors } from './JobErrors'

const JobWhy = later(() => import('./JobWhy'))

const PREVIEW_FIRES = 10

function useJobId(): string {
  return useParams({ from: '/app/jobs/$jobId' }).jobId
}

export function JobPage() {
  const { t } = useTranslation()
  const jobId = useJobId()
  const navigate = useNavigate()
  const canEdit = useCan('editor')
  const { why } = useSearch({ from: '/app/jobs/$jobId' })
  const job = useQuery(queries.job(jobId))
  if (job.error && !job.data) return <ErrorState error={job.error} onRetry={() => void job.refetch()} />
  if (!job.data) return <PageSkeleton />
  const { data } = job
  return (
    <Page
      title={data.name}
      crumbs={<Link to="/jobs">{t('jobs.list.title')}</Link>}
      heading={
        <span className="row">
          <span className="any-wrap">{data.name}</span> {data.state === 'paused' && <JobStateChip state={data.state} />}
        </span>
      }
      sub={data.description}
      actions={
        <>
          <LinkButton to="." search={(was: object) => ({ ...was, why: 'last' })} icon={<QuestionCircleOutlined />}>
            {t('jobs.detail.why')}
          </LinkButton>
          {canEdit && (
            <LinkButton to="/jobs/$jobId/edit" params={{ jobId }} icon={<EditOutlined />}>
              {t('jobs.action.edit')}
            </LinkButton>
          )}
          <JobActions job={data} onDeleted={() => void navigate({ to: '/jobs' })} />
        </>
      }
    >
      {data.state === 'paused' && (
        <Alert
          type="warning"
          showIcon
          className="below-3"
          title={<PausedBy job={data} />}
        />
      )}
      {data.pilesUp && <Alert type="warning" showIcon className="below-3" title={t('jobs.list.pilesUp', { count: data.waiting })} />}
      <DeclaredNote job={data} />
      <Tabs
        label={t('jobs.detail.tabs')}
        tabs={[
          { to: '/jobs/$jobId', params: { jobId }, text: t('jobs.detail.overview'), exact: true },
          { to: '/jobs/$jobId/runs', params: { jobId }, text: t('jobs.detail.runs') },
          { to: '/jobs/$jobId/changes', params: { jobId }, text: t('jobs.changes.title') },
        ]}
      />
      <Outlet />
      {why && <JobWhy job={data} at={why} />}
    </Page>
  )
}

export function JobOverviewTab() {
  const jobId = useJobId()
  const job = useQuery(queries.job(jobId)).data
  if (!job) return null
  return (
    <div className="stack">
      <JobVerdict job={job} />
      <div className="grid-2">
        <JobDurations job={job} />
        <JobWeek job={job} />
      </div>
      <JobRecent job={job} />
      <JobErrors job={job} />
      <div className="grid-2">
        <div className="stack">
          <JobWhat job={job} />
          <JobHow job={job} />
        </div>
        <JobWhen job={job} />
      </div>
    </div>
  )
}

function JobWhat({ job }: { job: Job }) {
  const { t } = useTranslation()
  return (
    <section className="card">
      <h2>{t('jobs.detail.what')}</h2>
      <dl className="facts">
        <Fact label={t('jobs.form.executor')}>
          <Link to="/executors/$executorId" params={{ executorId: job.executor.id }}>
            {job.executor.name}
          </Link>{' '}
          <OnlineCount count={job.executorOnline} />
        </Fact>
        <Fact label={t('jobs.form.handler')}>
          <span className="mono">{job.handler}</span>
        </Fact>
        {job.script && (
          <Fact label={t('scripts.jobScript')}>
            <ScriptLink id={job.script.id} />{' '}
            <span className="muted">· {job.script.revision ? t('scripts.versionN', { n: job.script.revision }) : t('scripts.jobNewest')}</span>
            {job.script.args.length > 0 && <div className="mono small">{job.script.args.join(' ')}</div>}
          </Fact>
        )}
        <Fact label={t('jobs.form.owner')}>
          {job.owner.name || (job.owner.email ? '' : '—')} {job.owner.email && <span className="muted">{job.owner.email}</span>}
        </Fact>
        <Fact label={t('jobs.detail.source')}>
          {t(job.source === 'code' ? 'jobs.detail.fromCode' : 'jobs.detail.fromConsole')}
          {job.declared && (
            <span className="muted">
              {' '}
              · {t(job.source === 'console' && job.declared.ownership === 'until_edited' ? 'jobs.detail.owned_edited' : `jobs.detail.owned_${job.declared.ownership}`)}
              {job.declared.version && ` · ${job.declared.version}`}
            </span>
          )}
        </Fact>
        <Fact label={t('field.created')}>
          {job.createdBy} · <RelativeTime at={job.createdAt} />
        </Fact>
        <Fact label={t('field.updated')}>
          {said(job.updatedBy, t)} · <RelativeTime at={job.updatedAt} />
        </Fact>
        <Fact label={t('runs.detail.revision')}>
          <span className="num">{job.revision}</span>
        </Fact>
        {Object.keys(job.labels).length > 0 && (
          <Fact label={t('jobs.form.labels')}>
            {Object.entries(job.labels).map(([key, value]) => (
              <Link key={key} to="/jobs" search={{ label: `${key}:${value}` }} className="label-chip">
                {key}={value}
              </Link>
            ))}
          </Fact>
        )}
      </dl>
      <h3 className="sub-head">{t('jobs.detail.input')}</h3>
      <JsonView value={job.input} label={t('jobs.detail.input')} empty={t('jobs.detail.noInput')} />
    </section>
  )
}

function JobWhen({ job }: { job: Job }) {
  const { t } = useTranslation()
  const fires = useQuery({
    ...queries.nextFires(job.id, job.revision, PREVIEW_FIRES),
    enabled: job.schedule.kind !== 'none',
  })
  return (
    <section className="card">
      <h2>{t('jobs.detail.when')}</h2>
      <dl className="facts">
        <Fact label={t('jobs.list.schedule')}>
          <ScheduleText schedule={job.schedule} />
        </Fact>
        <Fact label={t('jobs.list.nextFire')}>
          <NextFire job={job} />
        </Fact>
        {job.schedule.kind !== 'none' && (
          <Fact label={t('jobs.form.misfirePolicy')}>
            {t(MISFIRE[job.misfire.policy])}
            <span className="muted"> (&gt; {wireDuration(job.misfire.threshold, t) || '0'})</span>
          </Fact>
        )}
        {job.schedule.calendars && job.schedule.calendars.length > 0 && (
          <Fact label={t('calendars.inJob')}>
            {job.schedule.calendars.map((one, i) => (
              <span key={one.id}>
                {i > 0 && ', '}
                <Link to="/calendars/$calendarId" params={{ calendarId: one.id }}>
                  {one.name}
                </Link>
              </span>
            ))}{' '}
            <span className="muted">· {t(`calendars.days_${job.schedule.calendarDays ?? 'not_holidays'}`)}</span>
          </Fact>
        )}
        {job.schedule.startAt && (
          <Fact label={t('jobs.form.startAt')}>
            <AbsoluteTime at={job.schedule.startAt} zone={job.schedule.zone} />
          </Fact>
        )}
        {job.schedule.endAt && (
          <Fact label={t('jobs.form.endAt')}>
            <AbsoluteTime at={job.schedule.endAt} zone={job.schedule.zone} />
          </Fact>
        )}
      </dl>
      <h3 className="sub-head">{t('jobs.detail.nextFires')}</h3>
      {job.schedule.kind === 'none' ? (
        <p className="muted">{t('jobs.preview.none')}</p>
      ) : fires.data ? (
        <FireList fires={fires.data.fires} neverFires={fires.data.neverFires} zone={job.schedule.zone} />
      ) : fires.error ? (
        <ErrorState error={fires.error} onRetry={() => void fires.refetch()} />
      ) : (
        <span className="skeleton h-120 full" />
      )}
    </section>
  )
}

function JobHow({ job }: { job: Job }) {
  const { t } = useTranslation()
  const none = t('field.none')
  const { retry } = job
  return (
    <section className="card">
      <h2>{t('jobs.detail.how')}</h2>
      <dl className="facts">
        <Fact label={t('jobs.form.routing')}>
          {t(`jobs.form.routing_${job.routing}`)}
          {job.routingKey && <span className="mono muted"> {job.routingKey}</span>}
        </Fact>
        {job.requireLabels && (
          <Fact label={t('jobs.form.requireLabels')}>
            <span className="mono">{job.requireLabels}</span>
          </Fact>
        )}
        {job.preferLabels && (
          <Fact label={t('jobs.form.preferLabels')}>
            <span className="mono">{job.preferLabels}</span>
          </Fact>
        )}
        {job.sendRetry.maxSends > 0 && (
          <Fact label={t('jobs.form.maxSends')}>
            <span className="num">{job.sendRetry.maxSends}</span>
          </Fact>
        )}
        <Fact label={t('jobs.form.blocking')}>
          {t(`jobs.form.blocking_${job.blocking}`)}
          {job.blocking === 'parallel' && <span className="muted"> ({job.parallelism > 0 ? `≤ ${job.parallelism}` : t('limits.none')})</span>}
          {(job.blocking === 'serial' || (job.blocking === 'parallel' && job.parallelism > 0)) && (
            <span className="muted"> · {t('jobs.form.maxWaiting')}: {job.maxWaiting.toLocaleString()}</span>
          )}
        </Fact>
        {job.sharding && (
          <Fact label={t('jobs.form.sharding')}>
            {t(`jobs.form.sharding_${job.sharding.mode}`)}
            {job.sharding.shards ? <span className="num"> ({job.sharding.shards})</span> : null}
            {job.sharding.before && <span className="muted"> · {t('jobs.form.shard_before')}: {job.sharding.before}</span>}
            {job.sharding.after && <span className="muted"> · {t('jobs.form.shard_after')}: {job.sharding.after}</span>}
          </Fact>
        )}
        <Fact label={t('jobs.form.attempts')}>
          <span className="num">{retry.maxAttempts}</span>
          {retry.maxAttempts > 1 && (
            <span className="muted">
              {' '}
              · {wireDuration(retry.delay, t) || '0'} × {retry.backoff} ≤ {wireDuration(retry.maxDelay, t)}
            </span>
          )}
        </Fact>
        <Fact label={t('jobs.form.timeout')}>{wireDuration(job.timeout, t) || none}</Fact>
        <Fact label={t('jobs.form.dispatchTimeout')}>{wireDuration(job.dispatchTimeout, t) || none}</Fact>
        <Fact label={t('jobs.form.onLost')}>{t(`jobs.form.onLost_${job.onLost}`)}</Fact>
        {job.onSuccess && (
          <Fact label={t('jobs.form.callbackSuccess')}>
            <CallbackLink job={job} callback={job.onSuccess} />
          </Fact>
        )}
        {job.onFailure && (
          <Fact label={t('jobs.form.callbackFailure')}>
            <CallbackLink job={job} callback={job.onFailure} />
          </Fact>
        )}
        <Fact label={t('jobs.form.alert')}>
          {job.alert.onFailure ? [job.owner.email, ...job.alert.emails, job.alert.webhookUrl].filter(Boolean).join(', ') || none : none}
        </Fact>
      </dl>
    </section>
  )
}

function ScriptLink({ id }: { id: string }) {
  const script = useQuery(scriptQueries.script(id))
  return (
    <Link to="/settings/integrations/scripts/$scriptId" params={{ scriptId: id }}>
      {script.data?.name ?? id}
    </Link>
  )
}

/** Leads to the runs of a callback: they belong to a job of its own. */
function CallbackLink({ job, callback }: { job: Job; callback: Callback }) {
  return (
    <Link to="/runs" search={{ q: callbackJob(callback, job.executor.name) }} className="mono">
      {callbackText(callback)}
    </Link>
  )
}
