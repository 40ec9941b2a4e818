import './executors.css'
import { AppstoreOutlined, PlusOutlined, TableOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Button, Form, Input, Segmented } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { executorApi } from './executors'
import { isApiError } from '../../api/problem'
import { queries, queryClient } from '../../api/queries'
import type { Executor } from '../../api/types'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { FleetTabs } from './FleetTabs'
import { useNameRules } from './ExecutorActions'
import { useCan, useShowError } from '../../ui/hooks'
import { Page } from '../../ui/Page'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { SearchBox } from '../../ui/SearchBox'
import { OnlineCount } from '../../ui/StateChip'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'

const LIMIT = 200

export function ExecutorsPage() {
  const { t } = useTranslation()
  const search = useSearch({ from: '/app/executors' })
  const navigate = useNavigate()
  const canAdmin = useCan('admin')
  const [creating, setCreating] = useState(false)
  const executors = useQuery(queries.executors({ q: search.q, limit: LIMIT }))
  const go = (change: Partial<typeof search>) => void navigate({ to: '/executors', search: { ...search, ...change } })
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
      <div className="filters" role="search" aria-label={t('executors.title')}>
        <SearchBox value={search.q} onChange={(q) => go({ q })} label={t('executors.search')} />
        <Segmented
          aria-label={t('executors.view')}
          value={search.view ?? 'cards'}
          onChange={(view) => go({ view: view === 'table' ? 'table' : undefined })}
          options={[
            { value: 'cards', label: t('executors.cards'), icon: <AppstoreOutlined /> },
            { value: 'table', label: t('executors.table'), icon: <TableOutlined /> },
          ]}
        />
      </div>
      {asTable ? (
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
      {executor.description && <span className="muted clip">{executor.description}</span>}
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
    { key: 'description', title: t('field.description'), render: (one) => one.description || '—' },
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

function CreateExecutor({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const showError = useShowError()
  const nameRules = useNameRules()
  const [form] = Form.useForm<{ name: string; description?: string }>()
  const [busy, setBusy] = useState(false)
  const submit = async (fields: { name: string; description?: string }) => {
    setBusy(true)
    try {
      const executor = await executorApi.create({ name: fields.name.trim(), description: fields.description?.trim() || undefined })
      void queryClient.invalidateQueries({ queryKey: ['executors'] })
      onClose()
      await navigate({ to: '/executors/$executorId', params: { executorId: executor.id } })
    } catch (err) {
      if (isApiError(err, 'conflict')) form.setFields([{ name: 'name', errors: [t('executors.nameTaken')] }])
      else if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('executors.createTitle')} okText={t('action.create')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" onFinish={submit}>
        <Form.Item name="name" label={t('executors.name')} extra={t('executors.nameHelp')} validateTrigger="onSubmit" rules={nameRules}>
          <Input autoComplete="off" autoFocus spellCheck={false} />
        </Form.Item>
        <Form.Item name="description" label={t('field.description')}>
          <Input maxLength={4096} />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
