// Who plans which slice of the triggers: squares for the eye, a table for
// reading.
import './cluster.css'
import { useTranslation } from 'react-i18next'
import type { Cluster, ClusterPartition } from '../../api/types'
import { holdersOf } from './partitions'
import { humanDuration } from '../../lib/duration'
import { formatClock } from '../../lib/time'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { RelativeTime } from '../../ui/TimeText'

/** From this on a partition's planning is behind. */
const LATE_MS = 1_000

export function PartitionMap({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation()
  return (
    <section className="card" aria-label={t('cluster.partitionsTitle')}>
      <h2>{t('cluster.partitionsTitle')}</h2>
      <p className="muted below-3">
        {t('cluster.partitionsHelp', { count: cluster.partitions.length })}
      </p>
      <div className="stack gap-3">
        {holdersOf(cluster).map(({ node, partitions }) => (
          <div key={node?.bootId ?? ''}>
            <h3 className="row tight below-1">
              {node ? node.name : t('cluster.nobody')} <span className="muted num">{partitions.length}</span>
            </h3>
            <div className="cells" aria-hidden="true">
              {partitions.map((one) => (
                <Cell key={one.id} partition={one} />
              ))}
            </div>
          </div>
        ))}
      </div>
      <details className="above-3">
        <summary>{t('cluster.asTable')}</summary>
        <PartitionTable partitions={cluster.partitions} />
      </details>
    </section>
  )
}

function Cell({ partition }: { partition: ClusterPartition }) {
  const { t } = useTranslation()
  const { id, term, state, planningLagMs } = partition
  const tone = state !== 'held' ? ' free' : planningLagMs >= LATE_MS ? ' late' : ''
  return (
    <span className={`cell${tone}`} title={t('cluster.partitionText', { id, term, state: t(`cluster.partitionState.${state}`) })}>
      {id}
    </span>
  )
}

function PartitionTable({ partitions }: { partitions: ClusterPartition[] }) {
  const { t } = useTranslation()
  const columns: Column<ClusterPartition>[] = [
    { key: 'id', title: t('cluster.partition'), kind: 'title', render: (one) => <strong className="num">{one.id}</strong> },
    { key: 'state', title: t('field.state'), render: (one) => <span className={one.state === 'held' ? undefined : 'st-failed'}>{t(`cluster.partitionState.${one.state}`)}</span> },
    { key: 'holder', title: t('cluster.holder'), render: (one) => one.nodeName || <span className="muted">{t('cluster.nobody')}</span> },
    { key: 'term', title: t('cluster.term'), align: 'right', render: (one) => <span className="num">{one.term}</span> },
    { key: 'until', title: t('cluster.until'), render: (one) => <span className="mono">{one.until ? formatClock(one.until) : '—'}</span> },
    { key: 'next', title: t('cluster.nextFire'), render: (one) => <RelativeTime at={one.nextFireAt} /> },
    { key: 'lag', title: t('cluster.lag'), align: 'right', render: (one) => <span className="num nowrap">{humanDuration(one.planningLagMs, t)}</span> },
    { key: 'due', title: t('cluster.oldestDue'), render: (one) => <RelativeTime at={one.oldestDueAt} /> },
  ]
  return <ResourceTable label={t('cluster.partitionsTitle')} columns={columns} rows={partitions} rowKey={(one) => String(one.id)} empty={null} />
}
