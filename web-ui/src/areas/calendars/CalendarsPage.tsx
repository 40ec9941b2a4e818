import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { calendarQueries } from './calendars'
import type { Calendar } from '../../api/types'
import { useCan } from '../../ui/hooks'
import { LinkButton } from '../../ui/LinkButton'
import { NamedTable } from '../../ui/NamedTable'
import { Page } from '../../ui/Page'
import type { Column } from '../../ui/ResourceTable'

export function CalendarsPage() {
  const { t } = useTranslation()
  const { cursor } = useSearch({ from: '/app/calendars' })
  const navigate = useNavigate()
  const canEdit = useCan('editor')
  const calendars = useQuery(calendarQueries.calendars(cursor))
  const create = canEdit && (
    <LinkButton to="/calendars/new" primary icon={<PlusOutlined />}>
      {t('calendars.create')}
    </LinkButton>
  )
  const columns: Column<Calendar>[] = [
    { key: 'holidays', title: t('calendars.holidays'), align: 'right', render: (one) => <span className="num">{one.status.holidays}</span> },
    { key: 'makeUpDays', title: t('calendars.makeUpDays'), align: 'right', render: (one) => <span className="num">{one.status.makeUpDays}</span> },
    { key: 'blackouts', title: t('calendars.blackouts'), align: 'right', render: (one) => <span className="num">{one.status.blackouts}</span> },
    { key: 'zone', title: t('calendars.zone'), render: (one) => one.spec.zone || <span className="muted">{t('calendars.zoneAny')}</span> },
    { key: 'version', title: t('calendars.version'), align: 'right', render: (one) => <span className="num">{one.version}</span> },
  ]
  return (
    <Page title={t('calendars.title')} help={t('calendars.help')} actions={create}>
      <NamedTable
        label={t('calendars.title')}
        list={calendars}
        link={(one, name) => (
          <Link to="/calendars/$calendarId" params={{ calendarId: one.id }}>
            {name}
          </Link>
        )}
        columns={columns}
        emptyTitle={t('calendars.emptyTitle')}
        emptyHelp={t('calendars.emptyHelp')}
        create={create}
        cursor={cursor}
        onGo={(next) => void navigate({ to: '/calendars', search: next ? { cursor: next } : {} })}
      />
    </Page>
  )
}
