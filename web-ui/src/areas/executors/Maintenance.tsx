// The maintenance switch: of the cluster and the tenant on one page, of an executor on its own.
import { ToolOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { maintenanceApi, maintenanceQueries, refreshMaintenance, type Scope } from './maintenance'
import type { Maintenance, Ref } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { Check } from '../../ui/Check'
import { ByWhom } from '../../ui/ByWhom'
import { useCan, useSession } from '../../ui/hooks'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { RelativeTime } from '../../ui/TimeText'
import { useDanger } from '../../ui/useDanger'
import { later } from '../../ui/later'

const StartDialog = later(() => import('./StartDialog'))

/** With an executor: of this one alone. */
export function MaintenanceCard({ executor }: { executor?: Ref }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const session = useSession()
  const admin = useCan('admin')
  const platform = session?.user.platformAdmin ?? false
  const [past, setPast] = useState(false)
  const [starting, setStarting] = useState<Scope>()
  const all = useQuery(maintenanceQueries.all(past))
  const rows = all.data?.items.filter((one) => !executor || (one.kind === 'executor' && one.subject?.id === executor.id))
  const title = (one: Maintenance) => t(`maintenance.${one.kind}`, { name: one.subject?.name })
  const scopeOf = (one: Maintenance): Scope => (one.kind === 'executor' ? { executor: one.subject?.id ?? '' } : one.kind)
  const mayEnd = (one: Maintenance) => one.active && (one.kind === 'cluster' ? platform : admin)
  const end = (one: Maintenance) =>
    danger({ title: t('maintenance.endTitle', { what: title(one) }), content: t('maintenance.endHelp'), action: t('maintenance.end'), work: () => maintenanceApi.end(scopeOf(one)), done: t('maintenance.ended'), after: refreshMaintenance })
  const on = (scope: Scope) => rows?.some((one) => one.active && JSON.stringify(scopeOf(one)) === JSON.stringify(scope))
  const columns: Column<Maintenance>[] = [
    { key: 'what', title: t('maintenance.what'), kind: 'title', render: (one) => <strong>{title(one)}</strong> },
    { key: 'mode', title: t('maintenance.mode'), render: (one) => t(`maintenance.${one.mode}`) },
    { key: 'reason', title: t('field.reason'), render: (one) => one.reason || <span className="muted">—</span> },
    { key: 'by', title: t('maintenance.startedBy'), render: (one) => <ByWhom who={one.by} at={one.since} /> },
    {
      key: 'until',
      title: t('maintenance.ends'),
      render: (one) => (
        <span>
          <RelativeTime at={one.until} fallback={t('maintenance.open')} /> {one.endedBy && <span className="muted small">· {one.endedBy}</span>}
        </span>
      ),
    },
  ]
  if (admin) {
    columns.push({
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) =>
        mayEnd(one) && (
          <ActionButton size="small" onClick={() => end(one)} aria-label={`${t('maintenance.end')}: ${title(one)}`}>
            {t('maintenance.end')}
          </ActionButton>
        ),
    })
  }
  const offers: [Scope, string, boolean][] = executor
    ? [[{ executor: executor.id }, t('maintenance.start'), admin]]
    : [
        ['tenant', t('maintenance.startTenant'), admin],
        ['cluster', t('maintenance.startCluster'), platform],
      ]
  return (
    <section className="card flush" aria-label={t('maintenance.title')}>
      <div className="card-head">
        <div className="grow">
          <h2>{t('maintenance.title')}</h2>
          <p className="muted small">{t('maintenance.help')}</p>
        </div>
        <Check checked={past} onChange={setPast}>
          {t('maintenance.showEnded')}
        </Check>
        {offers.map(
          ([scope, label, may]) =>
            may &&
            rows &&
            !on(scope) && (
              <ActionButton key={label} icon={<ToolOutlined />} onClick={() => setStarting(scope)}>
                {label}
              </ActionButton>
            ),
        )}
      </div>
      <ResourceTable label={t('maintenance.title')} columns={columns} rows={rows} rowKey={(one) => one.id} error={all.error} onRetry={() => void all.refetch()} empty={<p className="muted empty-line">{t('maintenance.none')}</p>} />
      {starting && (
        <StartDialog
          scope={starting}
          what={starting === 'cluster' ? t('maintenance.cluster') : starting === 'tenant' ? t('maintenance.tenant', { name: session?.tenant.name }) : t('maintenance.executor', { name: executor?.name })}
          onClose={() => setStarting(undefined)}
        />
      )}
    </section>
  )
}
