// Join tokens of an executor, and the way of a newcomer: make one, copy a
// program, see the instance arrive.
import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Alert, Button, Checkbox, Form, Input, InputNumber, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { joiningApi, joiningQueries } from './joining'
import { queries, queryClient } from '../../api/queries'
import type { ExecutorDetail, JoinToken } from '../../api/types'
import { environmentSnippet, executorAddress, goSnippet } from './snippet'
import { ActionButton } from '../../ui/ActionButton'
import { complainAt } from '../../ui/complain'
import { CopyBlock } from '../../ui/CopyButton'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { useDanger } from '../../ui/useDanger'

const DAY_MS = 86_400_000

/** The moment so many days from now; undefined for no end. */
export function expiryIn(days: number): string | undefined {
  return days > 0 ? new Date(Date.now() + days * DAY_MS).toISOString() : undefined
}

export function useExpiryOptions() {
  const { t } = useTranslation()
  return [
    { value: 1, label: t('tokens.day') },
    { value: 30, label: t('tokens.month') },
    { value: 365, label: t('tokens.year') },
    { value: 0, label: t('tokens.forever') },
  ]
}

export function JoinTokens({ executor }: { executor: ExecutorDetail }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const [creating, setCreating] = useState(false)
  const tokens = useQuery(joiningQueries.joinTokens(executor.id))
  const refresh = () => void queryClient.invalidateQueries({ queryKey: joiningQueries.joinTokens(executor.id).queryKey })

  const revoke = (token: JoinToken) =>
    danger({
      title: t('tokens.revokeTitle'),
      content: t('tokens.revokeHelp'),
      action: t('tokens.revoke'),
      work: () => joiningApi.deleteJoinToken(executor.id, token.id),
      done: t('tokens.revoked'),
      after: refresh,
    })
  const columns: Column<JoinToken>[] = [
    { key: 'name', title: t('field.name'), kind: 'title', render: (one) => one.name || <span className="mono">{one.id}</span> },
    { key: 'prefix', title: t('keys.prefix'), render: (one) => <span className="mono">{one.prefix}…</span> },
    {
      key: 'uses',
      title: t('tokens.uses'),
      render: (one) => <span className="num">{one.maxUses ? t('tokens.usesOf', { n: one.uses, max: one.maxUses }) : one.uses}</span>,
    },
    { key: 'declareJobs', title: t('tokens.declareJobs'), render: (one) => (one.declareJobs ? '✓' : <span className="muted">{t('tokens.noJobs')}</span>) },
    { key: 'created', title: t('field.created'), render: (one) => <RelativeTime at={one.createdAt} /> },
    { key: 'expires', title: t('field.expires'), render: (one) => <RelativeTime at={one.expiresAt} fallback={t('tokens.forever')} /> },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <ActionButton size="small" danger onClick={() => revoke(one)} aria-label={`${t('tokens.revoke')}: ${one.name || one.id}`}>
          {t('tokens.revoke')}
        </ActionButton>
      ),
    },
  ]
  return (
    <section className="card flush" aria-label={t('tokens.title')}>
      <div className="card-head">
        <div>
          <h2>{t('tokens.title')}</h2>
          <p className="muted small">{t('tokens.help')}</p>
        </div>
        <ActionButton icon={<PlusOutlined />} onClick={() => setCreating(true)}>
          {t('tokens.create')}
        </ActionButton>
      </div>
      <ResourceTable
        label={t('tokens.title')}
        columns={columns}
        rows={tokens.data?.items}
        rowKey={(one) => one.id}
        error={tokens.error}
        onRetry={() => void tokens.refetch()}
        empty={<Blank title={t('tokens.empty')} help={t('tokens.emptyHelp')} />}
      />
      {creating && (
        <CreateToken
          executor={executor}
          onClose={() => {
            setCreating(false)
            refresh()
          }}
        />
      )}
    </section>
  )
}

interface Fields {
  name?: string
  days: number
  maxUses?: number | null
  declareJobs: boolean
}

function CreateToken({ executor, onClose }: { executor: ExecutorDetail; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const expiry = useExpiryOptions()
  const [form] = Form.useForm<Fields>()
  const [secret, setSecret] = useState<string>()
  const { data: version } = useQuery(queries.version())
  const [before] = useState(executor.instancesOnline)
  const [busy, setBusy] = useState(false)
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      const token = await joiningApi.createJoinToken(executor.id, {
        name: fields.name?.trim() || undefined,
        expiresAt: expiryIn(fields.days),
        maxUses: fields.maxUses ?? undefined,
        declareJobs: fields.declareJobs,
      })
      setSecret(token.secret)
    } catch (err) {
      if (!complainAt(form, err, ([first = '']) => [first === 'expiresAt' ? 'days' : first])) showError(err)
    } finally {
      setBusy(false)
    }
  }
  if (secret) {
    return (
      <Dialog width={720} title={t('tokens.secretTitle')} onCancel={onClose} footer={<Button onClick={onClose}>{t('action.close')}</Button>}>
        <div className="stack">
          <Alert type="warning" showIcon title={t('tokens.secretHelp')} />
          <CopyBlock text={environmentSnippet(secret)} label={t('tokens.title')} />
          <h3>{t('tokens.snippet')}</h3>
          <p className="muted">{t('tokens.snippetHelp')}</p>
          <CopyBlock text={goSnippet(executor.name, executorAddress(version?.executorAddresses[0], location.hostname))} label={t('tokens.snippet')} />
          <Arrival executorId={executor.id} before={before} />
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title={t('tokens.create')} okText={t('action.create')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ days: 365, declareJobs: true }} onFinish={submit}>
        <Form.Item name="name" label={t('tokens.name')}>
          <Input maxLength={64} autoComplete="off" />
        </Form.Item>
        <Form.Item name="days" label={t('tokens.expiresIn')}>
          <Select options={expiry} />
        </Form.Item>
        <Form.Item name="maxUses" label={t('tokens.maxUses')} extra={t('tokens.maxUsesHelp')}>
          <InputNumber min={1} precision={0} className="full" />
        </Form.Item>
        <Form.Item name="declareJobs" valuePropName="checked" extra={t('tokens.declareJobsHelp')}>
          <Checkbox>{t('tokens.declareJobs')}</Checkbox>
        </Form.Item>
      </Form>
    </Dialog>
  )
}

/** Ticks itself when an instance arrives that was not there when the token was made. */
function Arrival({ executorId, before }: { executorId: string; before: number }) {
  const { t } = useTranslation()
  const online = useQuery({ ...queries.executor(executorId), refetchInterval: 2_000 }).data?.instancesOnline ?? 0
  return (
    <p role="status" className={online > before ? 'st-success' : 'muted'}>
      {online > before ? `✓ ${t('tokens.arrived', { count: online })}` : `… ${t('tokens.waiting')}`}
    </p>
  )
}
