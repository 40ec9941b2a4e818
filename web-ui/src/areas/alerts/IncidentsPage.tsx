// Incidents: those that are not over first, those that nobody has taken on before the others.
import './alerts.css'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { alertQueries } from './alerts'
import type { Incident } from '../../api/types'
import { IncidentAbout, Messages, useKindText } from './AlertWords'
import { said } from '../../lib/said'
import { Choice } from '../../ui/Choice'
import { ExecutorFilter, useExecutorName } from '../../ui/ExecutorFilter'
import { Filters } from '../../ui/Filters'
import { useCan, useDraftSearch } from '../../ui/hooks'
import { IncidentActions } from './IncidentActions'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { IncidentStateChip } from '../../ui/StateChip'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { INCIDENT_LISTS, type IncidentsSearch } from '../../lib/search'

const MOST_OPEN = 200

/** The rows of a list; that of what is not over has two questions, and no pages. */
function useIncidents({ state, executorId, cursor }: IncidentsSearch) {
  const current = state === undefined
  const opened = useQuery({ ...alertQueries.incidents({ state: 'open', executorId, limit: MOST_OPEN }), enabled: current })
  const acknowledged = useQuery({ ...alertQueries.incidents({ state: 'acknowledged', executorId, limit: MOST_OPEN }), enabled: current })
  const page = useQuery({ ...alertQueries.incidents({ state: state === 'all' ? undefined : state, executorId, cursor }), enabled: !current })
  if (!current) return { rows: page.data?.items, error: page.error, refetch: () => void page.refetch(), nextCursor: page.data?.nextCursor, updatedAt: page.dataUpdatedAt, more: false }
  return {
    rows: opened.data && acknowledged.data && [...opened.data.items, ...acknowledged.data.items],
    error: opened.error ?? acknowledged.error,
    refetch: () => {
      void opened.refetch()
      void acknowledged.refetch()
    },
    nextCursor: undefined,
    updatedAt: Math.min(opened.dataUpdatedAt, acknowledged.dataUpdatedAt),
    more: Boolean(opened.data?.nextCursor ?? acknowledged.data?.nextCursor),
  }
}

export function IncidentsTab() {
  const { t } = useTranslation()
  const committed = useSearch({ from: '/app/alerts' })
  const navigate = useNavigate()
  const [search, setSearch] = useDraftSearch(committed, (next: IncidentsSearch) => void navigate({ to: '/alerts', search: next }))
  // A changed filter starts at the first page.
  const go = (change: Partial<IncidentsSearch>) => setSearch({ ...search, cursor: undefined, ...change })
  const incidents = useIncidents(committed)
  const executor = useExecutorName(search.executorId)
  const kind = useKindText()
  const canOperate = useCan('operator')
  const columns: Column<Incident>[] = [
    {
      key: 'what',
      title: t('alerts.what'),
      kind: 'title',
      render: (one) => (
        <Link to="/alerts/incidents/$incidentId" params={{ incidentId: one.id }}>
          <strong className="nowrap">{kind(one.kind)}</strong>
          <div className="muted small">{t(`alerts.rules.severities.${one.severity}`)}</div>
        </Link>
      ),
    },
    {
      key: 'about',
      title: t('alerts.about'),
      render: (one) => (
        <>
          <IncidentAbout incident={one} />
          {one.detail && (
            <div className="muted small clip-2" title={said(one.detail, t)}>
              {said(one.detail, t)}
            </div>
          )}
        </>
      ),
    },
    {
      key: 'state',
      title: t('field.state'),
      render: (one) => (
        <div>
          <IncidentStateChip state={one.state} />
          {one.state === 'acknowledged' && <div className="muted small">{one.acknowledgedBy}</div>}
        </div>
      ),
    },
    { key: 'events', title: t('alerts.events'), align: 'right', render: (one) => <span className="num">{one.events.toLocaleString()}</span> },
    { key: 'opened', title: t('alerts.opened'), render: (one) => <RelativeTime at={one.openedAt} /> },
    { key: 'last', title: t('alerts.last'), render: (one) => <RelativeTime at={one.lastAt} /> },
    {
      key: 'told',
      title: t('alerts.told'),
      render: (one) => <Messages incident={one} />,
    },
  ]
  if (canOperate) {
    columns.push({ key: 'actions', title: t('field.actions'), kind: 'actions', render: (one) => <IncidentActions incident={one} name={`${kind(one.kind)} ${one.jobs[0]?.name ?? ''}`.trim()} compact /> })
  }
  return (
    <>
      <Filters
        label={t('alerts.incidents')}
        chips={[
          search.state && { key: 'state', text: t(`alerts.lists.${search.state}`), onRemove: () => go({ state: undefined }) },
          search.executorId && { key: 'executor', text: `${t('alerts.executor')}: ${executor}`, onRemove: () => go({ executorId: undefined }) },
        ]}
      >
        <Choice
          always
          label={t('field.state')}
          value={search.state ?? 'current'}
          onChange={(state) => go({ state: state === 'current' ? undefined : state })}
          options={(['current', ...INCIDENT_LISTS] as const).map((value) => ({ value, label: t(`alerts.lists.${value}`) }))}
        />
        <ExecutorFilter label={t('alerts.executor')} value={search.executorId} onChange={(executorId) => go({ executorId })} />
      </Filters>
      <div className="card flush">
        <ResourceTable
          label={t('alerts.incidents')}
          columns={columns}
          rows={incidents.rows}
          rowKey={(one) => one.id}
          error={incidents.error}
          onRetry={incidents.refetch}
          updatedAt={incidents.updatedAt}
          filtered={Boolean(search.executorId) || (search.state !== undefined && search.state !== 'all')}
          onClearFilters={() => setSearch({ state: 'all' })}
          empty={search.state === 'all' ? <Blank title={t('alerts.noneTitle')} help={t('alerts.noneHelp')} /> : <Blank title={t('alerts.calmTitle')} help={t('alerts.calmHelp')} />}
          pager={<Pager cursor={search.cursor} nextCursor={incidents.nextCursor} onGo={(cursor) => go({ cursor })} />}
        />
        {incidents.more && <p className="muted small empty-line">{t('alerts.moreOpen')}</p>}
      </div>
    </>
  )
}
