// What is under maintenance: on every page, for as long as it is on.
import { ToolOutlined } from '@ant-design/icons'
import { useTranslation } from 'react-i18next'
import type { Me } from '../api/types'
import { formatWithZone } from '../lib/time'

export default function MaintenanceNotice({ items }: { items: Me['maintenance'] }) {
  const { t } = useTranslation()
  return items.map((one) => (
    <div className="banner" key={one.id}>
      <ToolOutlined aria-hidden />
      <strong>{t(`maintenance.${one.kind}`, { name: one.subject?.name })}</strong>
      <span>{t(`maintenance.${one.mode}`)}</span>
      {one.reason && <span>{one.reason}</span>}
      <span className="grow small">
        {t('maintenance.by', { by: one.by, since: formatWithZone(one.since) })}
        {one.until && ` · ${t('maintenance.until', { time: formatWithZone(one.until) })}`}
      </span>
    </div>
  ))
}
