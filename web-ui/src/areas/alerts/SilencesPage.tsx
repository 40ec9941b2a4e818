import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { alertApi, alertQueries, refreshAlerts } from './alerts'
import type { AlertSilence } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { MatchText } from './AlertWords'
import { ByWhom } from '../../ui/ByWhom'
import { Check } from '../../ui/Check'
import { useCan, useNow } from '../../ui/hooks'
import { later } from '../../ui/later'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { useDanger } from '../../ui/useDanger'

const SilenceDialog = later(() => import('./SilenceDialog'))

export function SilencesTab() {
  const { t } = useTranslation()
  const { over } = useSearch({ from: '/app/settings/notifications/silences' })
  const navigate = useNavigate()
  const danger = useDanger()
  const now = useNow()
  const canOperate = useCan('operator')
  const silences = useQuery(alertQueries.silences(over === '1'))
  const [creating, setCreating] = useState(false)
  const isOver = (one: AlertSilence) => Date.parse(one.endsAt) <= now
  const end = (one: AlertSilence) =>
    danger({ title: t('alerts.silence.endTitle'), content: t('alerts.silence.endHelp'), action: t('alerts.silence.end'), work: () => alertApi.endSilence(one.id), done: t('alerts.silence.endDone'), after: refreshAlerts })
  const columns: Column<AlertSilence>[] = [
    { key: 'reason', title: t('alerts.silence.reason'), kind: 'title', render: (one) => <strong className="any-wrap">{one.reason}</strong> },
    { key: 'what', title: t('alerts.silence.what'), render: (one) => <MatchText match={one.match} /> },
    {
      key: 'state',
      title: t('field.state'),
      render: (one) =>
        isOver(one) ? (
          <span className="muted">{one.endedBy ? t('alerts.silence.ended', { name: one.endedBy }) : t('alerts.silence.over')}</span>
        ) : (
          t(Date.parse(one.startsAt) > now ? 'alerts.silence.planned' : 'alerts.silence.on')
        ),
    },
    { key: 'ends', title: t('alerts.silence.ends'), render: (one) => <RelativeTime at={one.endsAt} /> },
    { key: 'by', title: t('alerts.silence.by'), render: (one) => <ByWhom who={one.createdBy} at={one.createdAt} /> },
  ]
  if (canOperate) {
    columns.push({
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) =>
        !isOver(one) && (
          <ActionButton size="small" danger onClick={() => end(one)} aria-label={`${t('alerts.silence.end')}: ${one.reason}`}>
            {t('alerts.silence.end')}
          </ActionButton>
        ),
    })
  }
  const create = canOperate && (
    <ActionButton type="primary" icon={<PlusOutlined />} onClick={() => setCreating(true)}>
      {t('alerts.silence.create')}
    </ActionButton>
  )
  return (
    <section className="card flush" aria-label={t('alerts.silences')}>
      <div className="card-head">
        <p className="muted small grow">{t('alerts.silence.help')}</p>
        <Check checked={over === '1'} onChange={(on) => void navigate({ to: '/settings/notifications/silences', search: on ? { over: '1' } : {}, replace: true })}>
          {t('alerts.silence.showOver')}
        </Check>
        {create}
      </div>
      <ResourceTable
        label={t('alerts.silences')}
        columns={columns}
        rows={silences.data?.items}
        rowKey={(one) => one.id}
        error={silences.error}
        onRetry={() => void silences.refetch()}
        empty={<Blank title={t('alerts.silence.emptyTitle')} help={t('alerts.silence.emptyHelp')} />}
      />
      {creating && <SilenceDialog onClose={() => setCreating(false)} />}
    </section>
  )
}
