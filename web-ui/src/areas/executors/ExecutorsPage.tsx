import './executors.css'
import { AppstoreOutlined, DeleteOutlined, PlusOutlined, TableOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Button } from 'antd'
import { lazy, Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { queries } from '../../api/queries'
import type { Executor } from '../../api/types'
import { FleetTabs } from './FleetTabs'
import { loadChunk } from '../../lib/chunk'
import { said } from '../../lib/said'
import { isBound } from '../../shell/Permitted'
import { useCan, useSession } from '../../ui/hooks'
import { later } from '../../ui/later'
import { Filters } from '../../ui/Filters'
import { Switcher } from '../../ui/Switcher'
import { Page } from '../../ui/Page'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { SearchBox } from '../../ui/SearchBox'
import { OnlineCount } from '../../ui/StateChip'
import { Blank, PageSkeleton } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'

const CreateExecutor = later(() => import('./CreateExecutor'))
const DeletedExecutors = lazy(() => loadChunk(() => import('./DeletedExecutors')))

const LIMIT = 200

export function ExecutorsPage() {
  const { t } = useTranslation()
  const search = useSearch({ from: '/app/executors' })
  const navigate = useNavigate()
  const canAdmin = useCan('admin')
  const [creating, setCreating] = useState(false)
  // The server answers a person who is bound to executors nothing of deleted ones.
  const bound = isBound(useSession())
  const deleted = search.view === 'deleted' && !bound
  const executors = useQuery({ ...queries.executors({ q: search.q, limit: LIMIT }), enabled: !deleted })
  const go = (change: Partial<typeof search>) => void navigate({ to: '/executors', search: { ...search, cursor: undefined, ...change } })
  const rows = executors.data?.items
  const asTable = search.view === 'table' || !rows || rows.length === 0
  return (
    <Page
      title={t('executors.title')}
      tabs={<FleetTabs />}
      actions={
        canAdmin && (
          <Button type="primary" icon={<PlusOutlined />} onClick={() => setCreating(true)}>
            {t('executors.create')}
          </Button>
        )
      }
    >
      <Filters label={t('executors.title')} search={!deleted && <SearchBox value={search.q} onChange={(q) => go({ q })} label={t('executors.search')} />}>
        <Switcher
          label={t('executors.view')}
          value={search.view ?? 'cards'}
          onChange={(view) => go({ view: view === 'cards' ? undefined : view })}
          options={[
            { value: 'cards', label: t('executors.cards'), icon: <AppstoreOutlined /> },
            { value: 'table', label: t('executors.table'), icon: <TableOutlined /> },
            ...(bound ? [] : [{ value: 'deleted' as const, label: t('deleted.title'), icon: <DeleteOutlined /> }]),
          ]}
        />
      </Filters>
      {deleted ? (
        <Suspense fallback={<PageSkeleton />}>
          <DeletedExecutors cursor={search.cursor} onGo={(cursor) => go({ cursor })} />
        </Suspense>
      ) : asTable ? (
        <div className="card flush">
          <ExecutorTable
            rows={rows}
            error={executors.error}
            onRetry={() => void executors.refetch()}
            filtered={Boolean(search.q)}
            onClear={() => go({ q: undefined })}
            onCreate={canAdmin ? () => setCreating(true) : undefined}
          />
        </div>
      ) : (
        <ul className="exec-cards no-marks no-padding">
          {rows.map((executor) => (
            <li key={executor.id}>
              <ExecutorCard executor={executor} />
            </li>
          ))}
        </ul>
      )}
      {creating && <CreateExecutor onClose={() => setCreating(false)} />}
    </Page>
  )
}

function ExecutorCard({ executor }: { executor: Executor }) {
  const { t } = useTranslation()
  return (
    <Link to="/executors/$executorId" params={{ executorId: executor.id }} className="tile exec-card">
      <span className="row between">
        <strong className="any-wrap">{executor.name}</strong>
        {executor.kind === 'built_in' && <span className="muted">{t('executors.builtIn')}</span>}
      </span>
      {executor.description && <span className="muted clip">{said(executor.description, t)}</span>}
      <span className="row between">
        <OnlineCount count={executor.instancesOnline} />
        <span className="muted">{t('executors.handlers', { count: executor.handlers })}</span>
      </span>
    </Link>
  )
}

interface TableProps {
  rows: Executor[] | undefined
  error: unknown
  onRetry: () => void
  filtered: boolean
  onClear: () => void
  onCreate: (() => void) | undefined
}

function ExecutorTable({ rows, error, onRetry, filtered, onClear, onCreate }: TableProps) {
  const { t } = useTranslation()
  const columns: Column<Executor>[] = [
    {
      key: 'name',
      title: t('field.name'),
      kind: 'title',
      render: (one) => (
        <>
          <Link to="/executors/$executorId" params={{ executorId: one.id }}>
            <strong>{one.name}</strong>
          </Link>{' '}
          {one.kind === 'built_in' && <span className="muted">{t('executors.builtIn')}</span>}
        </>
      ),
    },
    { key: 'description', title: t('field.description'), render: (one) => said(one.description, t) || '—' },
    { key: 'online', title: t('executors.instancesTitle'), render: (one) => <OnlineCount count={one.instancesOnline} /> },
    { key: 'handlers', title: t('executors.handlersTitle'), align: 'right', render: (one) => <span className="num">{one.handlers}</span> },
    { key: 'created', title: t('field.created'), render: (one) => <RelativeTime at={one.createdAt} /> },
  ]
  return (
    <ResourceTable
      label={t('executors.title')}
      columns={columns}
      rows={rows}
      rowKey={(one) => one.id}
      error={error}
      onRetry={onRetry}
      filtered={filtered}
      onClearFilters={onClear}
      empty={
        <Blank title={t('executors.emptyTitle')} help={t('executors.emptyHelp')}>
          {onCreate && (
            <Button type="primary" onClick={onCreate}>
              {t('executors.create')}
            </Button>
          )}
        </Blank>
      }
    />
  )
}
