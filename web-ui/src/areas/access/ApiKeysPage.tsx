import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Form, Input, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, accessQueries } from './access'
import { queryClient } from '../../api/queries'
import type { ApiKey, KeyRole } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { BoundTo, boundOrNone, ExecutorBound } from './ExecutorBound'
import { useShowError } from '../../ui/hooks'
import { expiryIn, useExpiryOptions } from '../executors/JoinTokens'
import { Page } from '../../ui/Page'
import { PeopleTabs } from './PeopleTabs'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { SecretDialog } from '../../ui/SecretDialog'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { useDanger } from '../../ui/useDanger'

const targetsOf = (one: ApiKey) => [...(one.executors ?? []), ...(one.callHandlers ?? [])]
const rolesOf = (one: ApiKey) => one.role.split('+') as KeyRole[]
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
          {rolesOf(one)
            .map((role) => t(`role.${role}`))
            .join(', ')}
          <BoundTo names={targetsOf(one)} />
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
    <Page title={t('keys.title')} sub={t('keys.help')} actions={create} tabs={<PeopleTabs />}>
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
  roles: KeyRole[]
  executors?: string[]
  targets?: string[]
  days: number
}

/** The form has a list of roles, targets for handlers, and days for the instant. */
const FIELDS: Record<string, string> = { role: 'roles', callHandlers: 'targets', expiresAt: 'days' }
const fieldOfKey = ([first = '']: string[]) => [FIELDS[first] ?? first]

const ROLES: KeyRole[] = ['caller', 'timer', 'viewer', 'manager', 'operator', 'editor', 'scripter', 'admin']

const FIRST_ROLES: KeyRole[] = ['operator']

function CreateKey({ onClose }: { onClose: (secret?: string) => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const expiry = useExpiryOptions()
  const [form] = Form.useForm<Fields>()
  const [busy, setBusy] = useState(false)
  const roles = Form.useWatch('roles', form) ?? FIRST_ROLES // not known before the form is drawn
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      const key = await accessApi.createApiKey({
        name: fields.name.trim(),
        role: fields.roles.join('+'),
        executors: boundOrNone(fields.executors),
        callHandlers: boundOrNone(fields.targets),
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
      <Form form={form} layout="vertical" initialValues={{ roles: FIRST_ROLES, days: 365 }} onFinish={submit}>
        <Form.Item name="name" label={t('field.name')} rules={[{ required: true, whitespace: true, message: t('field.required') }]}>
          <Input maxLength={64} autoComplete="off" autoFocus />
        </Form.Item>
        <Form.Item name="roles" label={t('field.role')} rules={[{ required: true, message: t('field.required') }]}>
          <Select
            mode="multiple"
            options={ROLES.map((role) => ({ value: role, label: t(`role.${role}`) }))}
            optionRender={(option) => (
              <div>
                {option.label}
                <div className="muted small">{t(`role.${option.value as KeyRole}Help`)}</div>
              </div>
            )}
          />
        </Form.Item>
        <ExecutorBound roles={roles} />
        {roles.every((role) => role === 'caller' || role === 'timer') && (
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
