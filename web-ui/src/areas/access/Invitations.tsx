// Inviting an account of another tenant, for the users' page.
import { useQuery } from '../../api/useQuery'
import { Button, Form, Input } from 'antd'
import type { Rule } from 'antd/es/form'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, accessQueries } from './access'
import { queryClient } from '../../api/queries'
import type { Invitation, Role } from '../../api/types'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { BoundTo, boundOrNone, ExecutorBound } from './ExecutorBound'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { RoleSelect } from './RoleSelect'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'

const refresh = () => void queryClient.invalidateQueries({ queryKey: ['invitations'] })

export function Invitations() {
  const { t } = useTranslation()
  const showError = useShowError()
  const invitations = useQuery(accessQueries.invitations())
  if (invitations.data?.items.length === 0) return null
  const takeBack = async (one: Invitation) => {
    try {
      await accessApi.deleteInvitation(one.id)
      message.success(t('invitations.takenBack', { name: one.username }))
      refresh()
    } catch (err) {
      showError(err)
    }
  }
  const columns: Column<Invitation>[] = [
    { key: 'name', title: t('users.username'), kind: 'title', render: (one) => <strong>{one.username}</strong> },
    {
      key: 'role',
      title: t('field.role'),
      render: (one) => (
        <>
          {t(`role.${one.role}`)}
          <BoundTo names={one.executors} />
        </>
      ),
    },
    { key: 'by', title: t('invitations.by'), render: (one) => one.invitedBy },
    { key: 'expires', title: t('invitations.expires'), render: (one) => <RelativeTime at={one.expiresAt} /> },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <Button size="small" onClick={() => void takeBack(one)} aria-label={`${t('invitations.takeBack')}: ${one.username}`}>
          {t('invitations.takeBack')}
        </Button>
      ),
    },
  ]
  return (
    <section className="card flush" aria-label={t('invitations.open')}>
      <div className="card-head">
        <h2>{t('invitations.open')}</h2>
      </div>
      <ResourceTable
        label={t('invitations.open')}
        columns={columns}
        rows={invitations.data?.items}
        rowKey={(one) => one.id}
        error={invitations.error}
        onRetry={() => void invitations.refetch()}
        empty={<Blank title={t('invitations.open')} />}
      />
    </section>
  )
}

/** What the server takes as a name of a user; it makes small letters of capital ones. */
const NAME = /^[a-z0-9][a-z0-9._@+-]{0,63}$/i

export function useUserNameRules(): Rule[] {
  const { t } = useTranslation()
  return [
    { required: true, whitespace: true, message: t('field.required') },
    { transform: (name: string) => name.trim(), pattern: NAME, message: t('users.nameRule') },
  ]
}

interface InviteFields {
  username: string
  role: Role
  executors?: string[]
}

export function InviteUser({ role, onClose }: { role: Role; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const nameRules = useUserNameRules()
  const [form] = Form.useForm<InviteFields>()
  const chosen = Form.useWatch('role', form)
  const [busy, setBusy] = useState(false)
  const submit = async (fields: InviteFields) => {
    setBusy(true)
    try {
      const made = await accessApi.createInvitation({ username: fields.username.trim(), role: fields.role, executors: boundOrNone(fields.executors) })
      refresh()
      message.success(t('invitations.sent', { name: made.username }))
      onClose()
    } catch (err) {
      if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('invitations.invite')} okText={t('invitations.invite')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <p className="muted">{t('invitations.help')}</p>
      <Form form={form} layout="vertical" initialValues={{ role }} onFinish={submit}>
        <Form.Item name="username" label={t('users.username')} extra={t('users.nameHelp')} validateTrigger="onSubmit" rules={nameRules}>
          <Input autoComplete="off" autoCapitalize="none" spellCheck={false} />
        </Form.Item>
        <Form.Item name="role" label={t('field.role')}>
          <RoleSelect />
        </Form.Item>
        <ExecutorBound roles={[chosen ?? role]} />
      </Form>
    </Dialog>
  )
}
