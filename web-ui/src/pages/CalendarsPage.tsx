import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { queries } from '../api/queries'
import type { CalendarSummary } from '../api/types'
import { useCan } from '../components/hooks'
import { LinkButton } from '../components/LinkButton'
import { Page } from '../components/Page'
import { Pager, ResourceTable, type Column } from '../components/ResourceTable'
import { Blank } from '../components/States'
import { RelativeTime } from '../components/TimeText'

export function CalendarsPage() {
  const { t } = useTranslation()
  const { cursor } = useSearch({ from: '/app/calendars' })
  const navigate = useNavigate()
  const canEdit = useCan('editor')
  const calendars = useQuery(queries.calendars(cursor))
  const create = canEdit && (
    <LinkButton to="/calendars/new" primary icon={<PlusOutlined />}>
      {t('calendars.create')}
    </LinkButton>
  )
  const columns: Column<CalendarSummary>[] = [
    {
      key: 'name',
      title: t('calendars.name'),
      kind: 'title',
      render: (one) => (
        <div>
          <Link to="/calendars/$calendarId" params={{ calendarId: one.id }}>
            <strong>{one.name}</strong>
          </Link>
          {one.description && <div className="muted small">{one.description}</div>}
        </div>
      ),
    },
    { key: 'holidays', title: t('calendars.holidays'), align: 'right', render: (one) => <span className="num">{one.holidays}</span> },
    { key: 'makeUpDays', title: t('calendars.makeUpDays'), align: 'right', render: (one) => <span className="num">{one.makeUpDays}</span> },
    { key: 'blackouts', title: t('calendars.blackouts'), align: 'right', render: (one) => <span className="num">{one.blackouts}</span> },
    { key: 'zone', title: t('calendars.zone'), render: (one) => one.zone || <span className="muted">{t('calendars.zoneAny')}</span> },
    { key: 'version', title: t('calendars.version'), align: 'right', render: (one) => <span className="num">{one.version}</span> },
    {
      key: 'updated',
      title: t('field.updated'),
      render: (one) => (
        <span>
          {one.updatedBy} · <RelativeTime at={one.updatedAt} />
        </span>
      ),
    },
  ]
  return (
    <Page title={t('calendars.title')} sub={t('calendars.help')} actions={create}>
      <div className="card flush">
        <ResourceTable
          label={t('calendars.title')}
          columns={columns}
          rows={calendars.data?.items}
          rowKey={(one) => one.id}
          error={calendars.error}
          onRetry={() => void calendars.refetch()}
          updatedAt={calendars.dataUpdatedAt}
          empty={
            <Blank title={t('calendars.emptyTitle')} help={t('calendars.emptyHelp')}>
              {create}
            </Blank>
          }
          pager={<Pager cursor={cursor} nextCursor={calendars.data?.nextCursor} onGo={(next) => void navigate({ to: '/calendars', search: next ? { cursor: next } : {} })} />}
        />
      </div>
    </Page>
  )
}
