// One executor: its instances, its handlers, its join tokens.
import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Alert } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { limitQueries } from './limits'
import { queries } from '../../api/queries'
import type { ExecutorDetail, Handler, HandlerVersion, Instance, RefusedDeclaration, RemovedInstance } from '../../api/types'
import { said } from '../../lib/said'
import { Changes } from '../../ui/Changes'
import { Check } from '../../ui/Check'
import { Denials } from './Denials'
import { ExecutorCallbacks } from './ExecutorCallbacks'
import { DrainButton, ExecutorActions, FormerNames, RemoveButton } from './ExecutorActions'
import { useCan } from '../../ui/hooks'
import { Load } from './InstanceLoad'
import { JoinTokens } from './JoinTokens'
import { LimitButton, Running, Waiting } from './Limits'
import { LinkButton } from '../../ui/LinkButton'
import { MaintenanceCard } from './Maintenance'
import { later } from '../../ui/later'
import { Page } from '../../ui/Page'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { InstanceStateChip, OnlineCount } from '../../ui/StateChip'
import { Blank, ErrorState, PageSkeleton } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { writeJson } from '../../lib/json'
import { limitOf } from './limitWords'

const RemovedDialog = later(() => import('./RemovedDialog'))

const SHOWN_VERSIONS = 4

export function ExecutorPage() {
  const { t } = useTranslation()
  const { executorId } = useParams({ from: '/app/executors/$executorId' })
  const canEdit = useCan('editor')
  const canAdmin = useCan('admin')
  const executor = useQuery(queries.executor(executorId))
  if (executor.error && !executor.data) return <ErrorState error={executor.error} onRetry={() => void executor.refetch()} />
  if (!executor.data) return <PageSkeleton />
  const { data } = executor
  return (
    <Page
      title={data.name}
      crumbs={<Link to="/executors">{t('executors.title')}</Link>}
      heading={
        <span className="row">
          <span className="any-wrap">{data.name}</span> <OnlineCount count={data.instancesOnline} />
        </span>
      }
      sub={said(data.description, t)}
      actions={
        <>
          <LinkButton to="/jobs" search={{ executorId }}>
            {t('executors.jobs')}
          </LinkButton>
          <LinkButton to="/runs" search={{ executorId }}>
            {t('executors.runs')}
          </LinkButton>
          {canEdit && data.kind !== 'built_in' && <ExecutorActions executor={data} />}
          {canEdit && (
            <LinkButton to="/jobs/new" search={{ executorId }} primary icon={<PlusOutlined />}>
              {t('executors.newJob')}
            </LinkButton>
          )}
        </>
      }
    >
      <div className="stack">
        {data.state === 'disabled' && <Alert type="warning" showIcon title={t('executors.disabledNote')} description={data.note} />}
        <FormerNames executor={data} canEdit={canEdit} />
        <ExecutorLimit executor={data} />
        <ExecutorCallbacks executor={data} />
        <MaintenanceCard executor={data} />
        {data.refusedDeclarations.length > 0 && <Refused list={data.refusedDeclarations} />}
        <Instances executor={data} />
        <Handlers executor={data} />
        {/* No process joins the admin nodes' own executor. */}
        {canAdmin && data.kind !== 'built_in' && <JoinTokens executor={data} />}
        {canAdmin && <Denials executorId={data.id} />}
        <Changes kind="executor" object={data.id} />
      </div>
    </Page>
  )
}

/** How many of its runs go on at once; people who look why something waits begin here. */
function ExecutorLimit({ executor }: { executor: ExecutorDetail }) {
  const { t } = useTranslation()
  const canEdit = useCan('editor')
  const limits = useQuery(limitQueries.limits())
  const limit = limits.data && limitOf(limits.data.items, 'executor', executor)
  if (!limit) return null
  return (
    <section className="card row" aria-label={t('limits.ofExecutor')}>
      <h2 className="no-margin">{t('limits.ofExecutor')}</h2>
      {limit.maxRunning > 0 ? (
        <>
          <Running row={limit} /> <Waiting row={limit} />
        </>
      ) : (
        <span className="muted">{t('limits.none')}</span>
      )}
      {canEdit && <LimitButton limited={limit} />}
    </section>
  )
}

/** Jobs that stand in the application's code only; their owner may look here first. */
function Refused({ list }: { list: RefusedDeclaration[] }) {
  const { t } = useTranslation()
  const columns: Column<RefusedDeclaration>[] = [
    { key: 'job', title: t('runs.list.job'), kind: 'title', render: (one) => <strong className="any-wrap">{one.job}</strong> },
    { key: 'why', title: t('field.reason'), render: (one) => <span className="any-wrap">{one.message}</span> },
    { key: 'version', title: t('field.version'), render: (one) => one.version || <span className="muted">—</span> },
    { key: 'seen', title: t('executors.lastSeen'), render: (one) => <RelativeTime at={one.refusedAt} /> },
  ]
  return (
    <section className="card flush" aria-label={t('executors.refusedTitle')}>
      <div className="card-head">
        <div>
          <h2>{t('executors.refusedTitle')}</h2>
          <p className="muted small no-margin">
            {t('executors.refusedHelp')}
          </p>
        </div>
      </div>
      <ResourceTable label={t('executors.refusedTitle')} columns={columns} rows={list} rowKey={(one) => one.job} empty={null} />
    </section>
  )
}

function Instances({ executor }: { executor: ExecutorDetail }) {
  const { t } = useTranslation()
  const { gone } = useSearch({ from: '/app/executors/$executorId' })
  const navigate = useNavigate()
  const canAdmin = useCan('admin')
  const canOperate = useCan('operator')
  const [removed, setRemoved] = useState<RemovedInstance>()
  const instances = useQuery(queries.instances(executor.id, gone ? { includeGone: true } : {}))
  const columns: Column<Instance>[] = [
    {
      key: 'name',
      title: t('field.name'),
      kind: 'title',
      render: (one) => (
        <div>
          <Link to="/runs" search={{ instanceId: one.id }}>
            <strong>{one.name}</strong>
          </Link>
          <div className="row tight">
            {Object.entries(one.labels ?? {}).map(([key, value]) => (
              <span key={key} className="label-chip">
                {key}={value}
              </span>
            ))}
          </div>
        </div>
      ),
    },
    {
      key: 'state',
      title: t('field.state'),
      render: (one) => (
        <div>
          <InstanceStateChip state={one.state} />
          {one.drainedBy && <div className="muted small">{t('executors.drainedBy', { name: one.drainedBy })}</div>}
        </div>
      ),
    },
    { key: 'load', title: t('executors.load'), render: (one) => <Load instance={one} /> },
    {
      key: 'host',
      title: t('executors.host'),
      render: (one) => (
        <span className="mono host">
          {one.host} <span className="muted">#{one.pid}</span>
          {one.address && <div className="muted small">{one.address}</div>}
        </span>
      ),
    },
    {
      key: 'version',
      title: t('field.version'),
      render: (one) => (
        <span>
          {one.version || '—'}
          <div className="muted small">
            {t('executors.sdk')} {one.sdkVersion}
          </div>
        </span>
      ),
    },
    {
      key: 'handlers',
      title: t('executors.handlersTitle'),
      render: (one) => (
        <details>
          <summary className="num">{one.handlers.length}</summary>
          <span className="mono small">{one.handlers.join(', ')}</span>
        </details>
      ),
    },
    { key: 'started', title: t('executors.started'), render: (one) => <RelativeTime at={one.startedAt} /> },
    {
      key: 'heartbeat',
      title: t('executors.heartbeat'),
      render: (one) => (
        <span title={said(one.goneReason, t)}>
          <RelativeTime at={one.lastHeartbeatAt} />
        </span>
      ),
    },
  ]
  if (canOperate && executor.kind !== 'built_in') {
    columns.push({
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) =>
        one.state !== 'gone' && (
          <span className="row tight">
            <DrainButton instance={one} />
            {canAdmin && <RemoveButton instance={one} onRemoved={(answer) => answer.runs.length > 0 && setRemoved(answer)} />}
          </span>
        ),
    })
  }
  return (
    <section className="card flush" aria-label={t('executors.instancesTitle')}>
      <div className="card-head">
        <h2>{t('executors.instancesTitle')}</h2>
        <Check checked={gone === '1'} onChange={(on) => void navigate({ to: '/executors/$executorId', params: { executorId: executor.id }, search: on ? { gone: '1' } : {}, replace: true })}>
          {t('executors.includeGone')}
        </Check>
      </div>
      <ResourceTable
        label={t('executors.instancesTitle')}
        columns={columns}
        rows={instances.data?.items}
        rowKey={(one) => one.id}
        error={instances.error}
        onRetry={() => void instances.refetch()}
        empty={<Blank title={t('executors.noInstances')} help={t('executors.noInstancesHelp')} />}
      />
      {removed && <RemovedDialog removed={removed} onClose={() => setRemoved(undefined)} />}
    </section>
  )
}

function Handlers({ executor }: { executor: ExecutorDetail }) {
  const { t } = useTranslation()
  const canEdit = useCan('editor')
  const columns: Column<Handler>[] = [
    {
      key: 'name',
      title: t('field.name'),
      kind: 'title',
      render: (one) => (
        <span className="row tight">
          <Link to="/jobs" search={{ executorId: executor.id, handler: one.name }}>
            <strong className="mono">{one.name}</strong>
          </Link>
          {one.idempotent && <span className="label-chip">{t('executors.idempotent')}</span>}
          {one.weight > 1 && (
            <span className="label-chip" title={t('executors.weightText', { count: one.weight })}>
              {t('executors.weight', { count: one.weight })}
            </span>
          )}
        </span>
      ),
    },
    { key: 'description', title: t('field.description'), render: (one) => one.description || <span className="muted">—</span> },
    {
      key: 'schema',
      title: t('executors.inputSchema'),
      render: (one) =>
        one.inputSchema && !fieldsOfSchema(one.inputSchema) ? (
          <span className="muted">{t('jobs.detail.noInput')}</span>
        ) : one.inputSchema ? (
          <details>
            <summary>{fieldsOfSchema(one.inputSchema)}</summary>
            <pre className="code-block start" tabIndex={0} role="region" aria-label={t('executors.inputSchema')}>
              {writeJson(one.inputSchema, 2)}
            </pre>
          </details>
        ) : (
          <span className="muted">—</span>
        ),
    },
    { key: 'online', title: t('executors.instancesTitle'), render: (one) => <OnlineCount count={one.instancesOnline} /> },
    { key: 'versions', title: t('executors.versions'), render: (one) => <Versions list={one.versions} /> },
    { key: 'seen', title: t('executors.lastSeen'), render: (one) => <RelativeTime at={one.lastSeenAt} /> },
  ]
  if (canEdit) {
    columns.push({
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <LinkButton to="/jobs/new" search={{ executorId: executor.id, handler: one.name }} size="small">
          {t('executors.newJob')}
          <span className="sr-only">: {one.name}</span>
        </LinkButton>
      ),
    })
  }
  return (
    <section className="card flush" aria-label={t('executors.handlersTitle')}>
      <div className="card-head">
        <h2>{t('executors.handlersTitle')}</h2>
      </div>
      <ResourceTable
        label={t('executors.handlersTitle')}
        columns={columns}
        rows={executor.handlers}
        rowKey={(one) => one.name}
        empty={<Blank title={t('executors.noHandlers')} help={t('executors.noHandlersHelp')} />}
      />
    </section>
  )
}

/** The versions of the application that have a handler; those in force first and plain. */
function Versions({ list }: { list: HandlerVersion[] }) {
  const { t } = useTranslation()
  if (list.length === 0) return <span className="muted">—</span>
  return (
    <span className="row tight">
      {list.slice(0, SHOWN_VERSIONS).map((one) => (
        <span key={one.build} className={one.inForce ? 'label-chip' : 'muted small'} title={t('executors.versionText', { count: one.instancesOnline, build: one.build })}>
          {one.version || t('executors.unnamed')}
        </span>
      ))}
      {list.length > SHOWN_VERSIONS && <span className="muted small">+{list.length - SHOWN_VERSIONS}</span>}
    </span>
  )
}

/** "day, dryRun": the names of the input's fields, as a summary; "" for none at all. */
function fieldsOfSchema(schema: unknown): string {
  const { properties, additionalProperties, type } = (schema ?? {}) as { properties?: object; additionalProperties?: unknown; type?: string }
  const names = Object.keys(properties ?? {})
  if (names.length === 0 && properties && additionalProperties === false) return ''
  return names.length > 0 ? names.join(', ') : (type ?? 'JSON')
}
