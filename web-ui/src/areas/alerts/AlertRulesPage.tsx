// Rules, in the order in which they decide, and what holds without them.
import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { alertApi, alertQueries, refreshAlerts } from './alerts'
import type { AlertRule, AlertSettings } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { ChannelName, Listed, MatchText } from './AlertWords'
import { Fact } from '../../ui/Fact'
import { useCan } from '../../ui/hooks'
import { LinkButton } from '../../ui/LinkButton'
import { QuietText } from './QuietHoursFields'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { ConditionText, ToldText } from './RuleText'
import { Blank } from '../../ui/States'
import { useDanger } from '../../ui/useDanger'
import { anyKind, inOrder } from './alertForm'
import { later } from '../../ui/later'

const DefaultsDialog = later(() => import('./DefaultsDialog'))

export function AlertRulesTab() {
  const { t } = useTranslation()
  const danger = useDanger()
  const canEdit = useCan('editor')
  const rules = useQuery(alertQueries.rules())
  const remove = (one: AlertRule) =>
    danger({
      title: t('alerts.rules.deleteTitle', { name: one.name }),
      content: t('alerts.rules.deleteHelp'),
      action: t('action.delete'),
      work: () => alertApi.deleteRule(one.id),
      done: t('alerts.rules.deleted', { name: one.name }),
      after: refreshAlerts,
    })
  const columns: Column<AlertRule>[] = [
    {
      key: 'name',
      title: t('field.name'),
      kind: 'title',
      render: (one) => (
        <div>
          {canEdit ? (
            <Link to="/settings/notifications/rules/$ruleId" params={{ ruleId: one.id }}>
              <strong>{one.name}</strong>
            </Link>
          ) : (
            <strong>{one.name}</strong>
          )}{' '}
          {one.spec.enabled === false && <span className="label-chip">{t('alerts.rules.off')}</span>}
          {one.spec.description && <div className="muted small">{one.spec.description}</div>}
        </div>
      ),
    },
    { key: 'position', title: t('alerts.rules.position'), align: 'right', render: (one) => <span className="num">{one.spec.position ?? 0}</span> },
    { key: 'match', title: t('alerts.rules.match'), render: ({ spec }) => <MatchText match={spec.match} anyKind={anyKind(spec, t)} /> },
    { key: 'when', title: t('alerts.rules.condition'), render: ({ spec }) => <ConditionText condition={spec.condition} /> },
    { key: 'severity', title: t('alerts.rules.severity'), render: ({ spec }) => t(`alerts.rules.severities.${spec.severity ?? 'warning'}`) },
    { key: 'who', title: t('alerts.rules.who'), render: ({ spec }) => <ToldText rule={spec} /> },
  ]
  if (canEdit) {
    columns.push({
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <ActionButton size="small" danger onClick={() => remove(one)} aria-label={`${t('action.delete')}: ${one.name}`}>
          {t('action.delete')}
        </ActionButton>
      ),
    })
  }
  const create = canEdit && (
    <LinkButton to="/settings/notifications/rules/new" primary icon={<PlusOutlined />}>
      {t('alerts.rules.create')}
    </LinkButton>
  )
  return (
    <div className="stack">
      <section className="card flush" aria-label={t('alerts.rules.tab')}>
        <div className="card-head">
          <p className="muted small grow">{t('alerts.rules.help')}</p>
          {create}
        </div>
        <ResourceTable
          label={t('alerts.rules.tab')}
          columns={columns}
          rows={rules.data && inOrder(rules.data.items)}
          rowKey={(one) => one.id}
          error={rules.error}
          onRetry={() => void rules.refetch()}
          empty={<Blank title={t('alerts.rules.emptyTitle')} help={t('alerts.rules.emptyHelp')} />}
        />
      </section>
      <Defaults />
    </div>
  )
}

function Defaults() {
  const { t } = useTranslation()
  const canEdit = useCan('editor')
  const settings = useQuery(alertQueries.settings())
  const [editing, setEditing] = useState<AlertSettings>()
  const { data } = settings
  return (
    <section className="card" aria-label={t('alerts.rules.defaults')}>
      <div className="card-head">
        <div className="grow">
          <h2>{t('alerts.rules.defaults')}</h2>
          <p className="muted small">{t('alerts.rules.defaultsHelp')}</p>
        </div>
        {canEdit && data && <ActionButton onClick={() => setEditing(data)}>{t('action.edit')}</ActionButton>}
      </div>
      {data && (
        <dl className="facts">
          <Fact label={t('alerts.rules.defaultChannels')}>
            {data.defaultChannelIds.length > 0 ? (
              <Listed>
                {data.defaultChannelIds.map((id) => (
                  <ChannelName key={id} id={id} />
                ))}
              </Listed>
            ) : (
              <span className="muted">{t('alerts.rules.noDefaults')}</span>
            )}
          </Fact>
          <Fact label={t('alerts.quiet.hours')}>{data.quietHours ? <QuietText hours={data.quietHours} /> : <span className="muted">{t('alerts.quiet.none')}</span>}</Fact>
        </dl>
      )}
      {editing && <DefaultsDialog settings={editing} onClose={() => setEditing(undefined)} />}
    </section>
  )
}
