import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../api/useQuery'
import { Form, Input, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, accessQueries } from '../api/access'
import { queryClient } from '../api/queries'
import type { ApiKey } from '../api/types'
import { ActionButton } from '../components/ActionButton'
import { complainAt } from '../components/complain'
import { Dialog } from '../components/Dialog'
import { useShowError } from '../components/hooks'
import { expiryIn, useExpiryOptions } from '../components/JoinTokens'
import { Page } from '../components/Page'
import { ResourceTable, type Column } from '../components/ResourceTable'
import { SecretDialog } from '../components/SecretDialog'
import { Blank } from '../components/States'
import { RelativeTime } from '../components/TimeText'
import { useDanger } from '../components/useDanger'

const targetsOf = (one: ApiKey) => [...(one.callExecutors ?? []), ...(one.callHandlers ?? [])]
const refresh = () => void queryClient.invalidateQueries({ queryKey: ['api-keys'] })

export function ApiKeysPage() {
  const { t } = useTranslation()
  const danger = useDanger()
  const keys = useQuery(accessQueries.apiKeys())
  const [creating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string>()
  const revoke = (key: ApiKey) =>
    danger({ title: t('keys.revokeTitle', { name: key.name }), content: t('keys.revokeHelp'), action: t('keys.revoke'), work: () => accessApi.deleteApiKey(key.id), done: t('keys.revoked'), after: refresh })
  const columns: Column<ApiKey>[] = [
    { key: 'name', title: t('field.name'), kind: 'title', render: (one) => <strong>{one.name}</strong> },
    { key: 'prefix', title: t('keys.prefix'), render: (one) => <span className="mono">{one.prefix}…</span> },
    {
      key: 'role',
      title: t('field.role'),
      render: (one) => (
        <>
          {t(`role.${one.role}`)}
          {targetsOf(one).length > 0 && <span className="mono muted"> {targetsOf(one).join(', ')}</span>}
        </>
      ),
    },
    { key: 'created', title: t('field.created'), render: (one) => <RelativeTime at={one.createdAt} /> },
    { key: 'used', title: t('field.lastUsed'), render: (one) => <RelativeTime at={one.lastUsedAt} fallback={t('field.never')} /> },
    { key: 'expires', title: t('field.expires'), render: (one) => <RelativeTime at={one.expiresAt} fallback={t('tokens.forever')} /> },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <ActionButton size="small" danger onClick={() => revoke(one)} aria-label={`${t('keys.revoke')}: ${one.name}`}>
          {t('keys.revoke')}
        </ActionButton>
      ),
    },
  ]
  const create = (
    <ActionButton type="primary" icon={<PlusOutlined />} onClick={() => setCreating(true)}>
      {t('keys.create')}
    </ActionButton>
  )
  return (
    <Page title={t('keys.title')} sub={t('keys.help')} actions={create}>
      <div className="card flush">
        <ResourceTable
          label={t('keys.title')}
          columns={columns}
          rows={keys.data?.items}
          rowKey={(one) => one.id}
          error={keys.error}
          onRetry={() => void keys.refetch()}
          empty={<Blank title={t('keys.emptyTitle')} help={t('keys.emptyHelp')} />}
        />
      </div>
      {creating && (
        <CreateKey
          onClose={(made) => {
            setCreating(false)
            setSecret(made)
          }}
        />
      )}
      {secret && <SecretDialog title={t('keys.secretTitle')} help={t('tokens.secretHelp')} secret={secret} onClose={() => setSecret(undefined)} />}
    </Page>
  )
}

interface Fields {
  name: string
  role: ApiKey['role']
  targets?: string[]
  days: number
}

/** The form has one field for both lists of targets, and days for the instant. */
const fieldOfKey = ([first = '']: string[]) => [first === 'callExecutors' || first === 'callHandlers' ? 'targets' : first === 'expiresAt' ? 'days' : first]

const ROLES: ApiKey['role'][] = ['caller', 'timer', 'viewer', 'operator', 'editor', 'scripter', 'admin']

function CreateKey({ onClose }: { onClose: (secret?: string) => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const expiry = useExpiryOptions()
  const [form] = Form.useForm<Fields>()
  const [busy, setBusy] = useState(false)
  const role = Form.useWatch('role', form)
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      const targets = fields.targets ?? []
      const some = (list: string[]) => (list.length > 0 ? list : undefined)
      const key = await accessApi.createApiKey({
        name: fields.name.trim(),
        role: fields.role,
        callExecutors: some(targets.filter((one) => !one.includes('/'))),
        callHandlers: some(targets.filter((one) => one.includes('/'))),
        expiresAt: expiryIn(fields.days),
      })
      refresh()
      onClose(key.secret)
    } catch (err) {
      if (!complainAt(form, err, fieldOfKey)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('keys.create')} okText={t('action.create')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={() => onClose()}>
      <Form form={form} layout="vertical" initialValues={{ role: 'operator', days: 365 }} onFinish={submit}>
        <Form.Item name="name" label={t('field.name')} rules={[{ required: true, whitespace: true, message: t('field.required') }]}>
          <Input maxLength={64} autoComplete="off" autoFocus />
        </Form.Item>
        <Form.Item name="role" label={t('field.role')}>
          <Select
            options={ROLES.map((role) => ({ value: role, label: t(`role.${role}`) }))}
            optionRender={(option) => (
              <div>
                {option.label}
                <div className="muted small">{t(`role.${option.value as ApiKey['role']}Help`)}</div>
              </div>
            )}
          />
        </Form.Item>
        {role !== 'viewer' && (
          <Form.Item name="targets" label={t('keys.targets')} extra={t('keys.targetsHelp')}>
            <Select mode="tags" maxCount={30} tokenSeparators={[',', ' ']} open={false} suffixIcon={null} />
          </Form.Item>
        )}
        <Form.Item name="days" label={t('tokens.expiresIn')}>
          <Select options={expiry} />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
