// The engine at a glance: what it stands on, its nodes, who plans what.
import { useQuery } from '../../api/useQuery'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { clusterQueries } from './cluster'
import type { Cluster, ClusterNode } from '../../api/types'
import { ClusterAlerts } from './ClusterAlerts'
import { useCan, useSession } from '../../ui/hooks'
import { MaintenanceCard } from '../executors/Maintenance'
import { PartitionMap } from './PartitionMap'
import { Page } from '../../ui/Page'
import { Refusals } from './Refusals'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { NodeStateChip } from '../../ui/StateChip'
import { Blank, ErrorState, PageSkeleton } from '../../ui/States'
import { DurationText, RelativeTime } from '../../ui/TimeText'
import { StateIcon } from '../../ui/StateIcon'
import { holdersOf, summaryOf, termsOf, zonesText } from './partitions'
import { humanDuration } from '../../lib/duration'

/** A clock that is off by less is as exact as a network lets it be. */
const EXACT_MS = 5

export function ClusterPage() {
  const { t } = useTranslation()
  const cluster = useQuery(clusterQueries.cluster())
  const platform = useSession()?.user.platformAdmin ?? false
  if (cluster.error && !cluster.data) return <ErrorState error={cluster.error} onRetry={() => void cluster.refetch()} />
  if (!cluster.data) return <PageSkeleton />
  const { data } = cluster
  return (
    <Page title={t('cluster.title')} help={t('cluster.help')}>
      <div className="stack">
        <ClusterAlerts cluster={data} />
        <Tiles cluster={data} />
        <MaintenanceCard />
        <Nodes cluster={data} error={cluster.error} updatedAt={cluster.dataUpdatedAt} />
        {platform && <Refusals />}
        <PartitionMap cluster={data} />
      </div>
    </Page>
  )
}

function Tile({ label, value, bad, children }: { label: string; value: ReactNode; bad?: boolean; children: ReactNode }) {
  return (
    <div className="tile">
      <div className="muted">{label}</div>
      <div className={`tile-value${bad ? ' st-failed' : ''}`}>{value}</div>
      <div className="muted small">{children}</div>
    </div>
  )
}

function Tiles({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation()
  const { database, clock, partitions } = cluster
  const sum = summaryOf(cluster)
  const writable = database.role === 'primary' && !database.readOnly
  return (
    <div className="tiles">
      <Tile label={t('cluster.database')} bad={!writable} value={t(`cluster.role.${database.role}`)}>
        {database.kind} {database.version} · {t(database.readOnly ? 'cluster.readOnly' : 'cluster.writable')} · {t('cluster.roundTrip')} {database.latencyMs < 0.1 ? '< 0.1' : database.latencyMs.toFixed(1)} ms
      </Tile>
      <Tile label={t('cluster.clock')} bad={clock.held} value={t(clock.held ? 'cluster.clockHeld' : 'cluster.clockOk')}>
        {t('cluster.clockOkHelp', { text: humanDuration(sum.worstSkewMs, t) })}
      </Tile>
      <Tile label={t('cluster.held')} bad={sum.orphans > 0} value={t('cluster.heldOf', { n: sum.held, all: partitions.length })}>
        {sum.orphans > 0 ? t('cluster.orphans', { count: sum.orphans }) : t('cluster.allHeld')}
      </Tile>
      <Tile label={t('cluster.worstLag')} bad={sum.worstLagMs >= 1_000} value={humanDuration(sum.worstLagMs, t)}>
        {sum.worstDueMs > 0 ? t('cluster.overdue', { text: humanDuration(sum.worstDueMs, t) }) : t('cluster.inTime')}
      </Tile>
    </div>
  )
}

function Nodes({ cluster, error, updatedAt }: { cluster: Cluster; error: unknown; updatedAt: number }) {
  const { t } = useTranslation()
  const admin = useCan('admin')
  const held = new Map(holdersOf(cluster).map(({ node, partitions }) => [node?.bootId, partitions]))
  const forAdmins: Column<ClusterNode>[] = [
    { key: 'sessions', title: t('cluster.sessions'), align: 'right', render: (one) => <span className="num">{one.sessions}</span> },
    { key: 'address', title: t('cluster.address'), render: (one) => <span className="mono small">{one.executorAddress || '—'}</span> },
  ]
  const columns: Column<ClusterNode>[] = [
    {
      key: 'node',
      title: t('cluster.node'),
      kind: 'title',
      render: (one) => (
        <div>
          <span className="row tight">
            <strong>{one.name}</strong>
            {one.current && <span className="label-chip">{t('cluster.current')}</span>}
          </span>
          <div className="muted small">{one.version}</div>
          {one.zoneRules.digest && (
            <div className={`small ${cluster.zonesDiffer ? 'st-timeout' : 'muted'}`} title={[one.zoneRules.source, one.zoneRules.digest].filter(Boolean).join(' · ')}>
              {t('cluster.zones', { text: zonesText(one.zoneRules, cluster.zonesDiffer) })}
            </div>
          )}
        </div>
      ),
    },
    {
      key: 'state',
      title: t('field.state'),
      render: (one) => (
        <div>
          <NodeStateChip state={one.state} />
          {one.clockHeld && <div className="state st-timeout small"><StateIcon name="pause" /> {t('cluster.clockHeldChip')}</div>}
          {!one.connected && <div className="st-lost small">? {t('cluster.disconnected')}</div>}
        </div>
      ),
    },
    { key: 'partitions', title: t('cluster.partitions'), align: 'right', render: (one) => <span className="num">{one.partitions}</span> },
    { key: 'terms', title: t('cluster.terms'), align: 'right', render: (one) => <span className="num nowrap">{termsOf(held.get(one.bootId) ?? []) || '—'}</span> },
    { key: 'lag', title: t('cluster.lag'), align: 'right', render: (one) => <span className={one.planningLagMs >= 1_000 ? 'st-timeout' : undefined}><DurationText ms={one.planningLagMs} /></span> },
    { key: 'skew', title: t('cluster.skew'), align: 'right', render: (one) => <Skew ms={one.clockSkewMs} /> },
    { key: 'since', title: t('cluster.since'), render: (one) => <RelativeTime at={one.startedAt} /> },
    { key: 'seen', title: t('cluster.seen'), render: (one) => <DurationText ms={one.heartbeatAgeMs} /> },
    { key: 'boot', title: t('cluster.boot'), render: (one) => <span className="mono small" title={one.bootId}>{one.bootId.slice(0, 8)}</span> },
    ...(admin ? forAdmins : []),
  ]
  return (
    <section className="card flush" aria-label={t('cluster.nodes')}>
      <div className="card-head">
        <h2>{t('cluster.nodes')}</h2>
      </div>
      <ResourceTable
        label={t('cluster.nodes')}
        columns={columns}
        rows={cluster.nodes}
        rowKey={(one) => one.bootId}
        error={error}
        updatedAt={updatedAt}
        empty={<Blank title={t('cluster.nodes')} />}
      />
    </section>
  )
}

function Skew({ ms }: { ms: number }) {
  const { t } = useTranslation()
  const text = humanDuration(Math.abs(ms), t)
  return (
    <span className="num nowrap" title={`${t('cluster.skewHelp')}: ${ms} ms`}>
      {Math.abs(ms) < EXACT_MS ? <span className="muted">{t('cluster.exact')}</span> : t(ms > 0 ? 'cluster.ahead' : 'cluster.behind', { text })}
    </span>
  )
}
