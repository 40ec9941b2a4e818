// One incident: how it stands, its events, and who was told.
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { alertQueries } from './alerts'
import type { Id, Incident, IncidentEvent } from '../../api/types'
import { ExecutorName, IncidentAbout, Messages, useKindText } from './AlertWords'
import { DeliveryTable } from './DeliveryTable'
import { said } from '../../lib/said'
import { Fact } from '../../ui/Fact'
import { IncidentActions } from './IncidentActions'
import { Page } from '../../ui/Page'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { IncidentStateChip } from '../../ui/StateChip'
import { ErrorState, PageSkeleton } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'

export function IncidentPage() {
  const { t } = useTranslation()
  const { incidentId } = useParams({ from: '/app/alerts/incidents/$incidentId' })
  const incident = useQuery(alertQueries.incident(incidentId))
  const kind = useKindText()
  if (incident.error && !incident.data) return <ErrorState error={incident.error} onRetry={() => void incident.refetch()} />
  if (!incident.data) return <PageSkeleton />
  const { data } = incident
  return (
    <Page
      title={kind(data.kind)}
      crumbs={<Link to="/alerts">{t('alerts.title')}</Link>}
      heading={
        <span className="row">
          {kind(data.kind)} <IncidentStateChip state={data.state} />
        </span>
      }
      actions={<IncidentActions incident={data} name={kind(data.kind)} />}
    >
      <div className="stack">
        <Facts incident={data} />
        <Events id={data.id} />
        <section className="card flush" aria-label={t('alerts.deliveriesOf')}>
          <div className="card-head">
            <h2>{t('alerts.deliveriesOf')}</h2>
          </div>
          <Told id={data.id} />
        </section>
      </div>
    </Page>
  )
}

function Facts({ incident: one }: { incident: Incident }) {
  const { t } = useTranslation()
  return (
    <section className="card" aria-label={t('alerts.incident')}>
      <dl className="facts">
        <Fact label={t('alerts.about')}>
          <IncidentAbout incident={one} />
        </Fact>
        {one.jobId && one.executorId && (
          <Fact label={t('alerts.executor')}>
            <Link to="/executors/$executorId" params={{ executorId: one.executorId }}>
              <ExecutorName id={one.executorId} />
            </Link>
          </Fact>
        )}
        <Fact label={t('alerts.events')}>
          <span className="num">{one.events.toLocaleString()}</span>
        </Fact>
        <Fact label={t('alerts.opened')}>
          <RelativeTime at={one.openedAt} />
        </Fact>
        <Fact label={t('alerts.last')}>
          <RelativeTime at={one.lastAt} />
        </Fact>
        <Fact label={t('alerts.told')}>
          <Messages incident={one} />
        </Fact>
        {one.acknowledgedAt && (
          <Fact label={t('alerts.acknowledgedBy')}>
            {one.acknowledgedBy} · <RelativeTime at={one.acknowledgedAt} />
          </Fact>
        )}
        {one.resolvedAt && (
          <Fact label={t('alerts.resolvedBy')}>
            {one.resolvedBy || t('alerts.recovered')} · <RelativeTime at={one.resolvedAt} />
          </Fact>
        )}
        {one.reopened > 0 && <Fact label={t('alerts.reopened')}>{t('alerts.reopenedTimes', { count: one.reopened })}</Fact>}
        {one.partOf && (
          <Fact label={t('alerts.partOf')}>
            <Link to="/alerts/incidents/$incidentId" params={{ incidentId: one.partOf }}>
              {t('alerts.partOfText')}
            </Link>
          </Fact>
        )}
        {one.detail && (
          <Fact wide label={t('alerts.detail')}>
            {said(one.detail, t)}
          </Fact>
        )}
      </dl>
      {one.jobCount > 1 && (
        <details className="above-3">
          <summary>
            {t('alerts.jobs')} <span className="num">({one.jobCount})</span>
          </summary>
          <ul className="plain-list">
            {one.jobs.map((job) => (
              <li key={job.id}>
                <Link to="/jobs/$jobId" params={{ jobId: job.id }}>
                  {job.name}
                </Link>
                <span className="num muted">{job.events.toLocaleString()}</span>
              </li>
            ))}
          </ul>
          {one.jobCount > one.jobs.length && <p className="muted small">{t('alerts.jobsFirst', { n: one.jobs.length })}</p>}
        </details>
      )}
    </section>
  )
}

function Events({ id }: { id: Id }) {
  const { t } = useTranslation()
  const { cursor } = useSearch({ from: '/app/alerts/incidents/$incidentId' })
  const navigate = useNavigate()
  const events = useQuery(alertQueries.incidentEvents(id, cursor))
  const kind = useKindText()
  const columns: Column<IncidentEvent>[] = [
    { key: 'kind', title: t('alerts.what'), kind: 'title', render: (one) => <span className="nowrap">{kind(one.kind)}</span> },
    { key: 'at', title: t('field.created'), render: (one) => <RelativeTime at={one.createdAt} /> },
    {
      key: 'run',
      title: t('alerts.run'),
      render: (one) =>
        one.runId ? (
          <Link to="/runs/$runId" params={{ runId: one.runId }} className="mono">
            {one.runId}
          </Link>
        ) : (
          <span className="muted">—</span>
        ),
    },
    {
      key: 'detail',
      title: t('alerts.detail'),
      render: (one) => {
        const text = [one.reason, one.missed > 0 && t('alerts.missedRuns', { count: one.missed }), said(one.detail, t)].filter(Boolean).join(' · ')
        return text ? <span className="any-wrap">{text}</span> : <span className="muted">—</span>
      },
    },
  ]
  return (
    <section className="card flush" aria-label={t('alerts.eventList')}>
      <div className="card-head">
        <h2>{t('alerts.eventList')}</h2>
      </div>
      <ResourceTable
        label={t('alerts.eventList')}
        columns={columns}
        rows={events.data?.items}
        rowKey={(one) => one.id}
        error={events.error}
        onRetry={() => void events.refetch()}
        empty={<p className="muted empty-line">{t('alerts.noEvents')}</p>}
        pager={
          <Pager
            cursor={cursor}
            nextCursor={events.data?.nextCursor}
            onGo={(next) => void navigate({ to: '/alerts/incidents/$incidentId', params: { incidentId: id }, search: next ? { cursor: next } : {} })}
          />
        }
      />
    </section>
  )
}

function Told({ id }: { id: Id }) {
  const { t } = useTranslation()
  const deliveries = useQuery(alertQueries.deliveries({ incidentId: id, limit: 100 }))
  return <DeliveryTable list={deliveries} empty={<p className="muted empty-line">{t('alerts.noDeliveries')}</p>} />
}
