import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, accessQueries } from './access'
import { isApiError } from '../../api/problem'
import { queryClient } from '../../api/queries'
import type { Role, User } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { BoundTo, boundOrNone, ExecutorBound } from './ExecutorBound'
import { useSession, useShowError } from '../../ui/hooks'
import { Invitations, InviteUser, useUserNameRules } from './Invitations'
import { message } from '../../ui/notices'
import { Page } from '../../ui/Page'
import { PeopleTabs } from './PeopleTabs'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { RoleSelect } from './RoleSelect'
import { SecretDialog } from '../../ui/SecretDialog'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { useConfirm } from '../../ui/useConfirm'
import { useDanger } from '../../ui/useDanger'
import { StateIcon } from '../../ui/StateIcon'

interface Shown {
  name: string
  password: string
}

const refresh = () => void queryClient.invalidateQueries({ queryKey: ['users'] })

export function UsersPage() {
  const { t } = useTranslation()
  const users = useQuery(accessQueries.users())
  const [creating, setCreating] = useState(false)
  const [inviting, setInviting] = useState(false)
  const [shown, setShown] = useState<Shown>()
  const [changing, setChanging] = useState<User>()
  const columns = useUserColumns(setShown, setChanging)
  // The first one of a tenant lets the others in.
  const first = users.data?.items.length === 0 ? 'admin' : 'viewer'
  return (
    <Page
      title={t('users.title')}
      tabs={<PeopleTabs />}
      actions={
        <>
          <ActionButton onClick={() => setInviting(true)}>{t('invitations.invite')}</ActionButton>
          <ActionButton type="primary" icon={<PlusOutlined />} onClick={() => setCreating(true)}>
            {t('users.create')}
          </ActionButton>
        </>
      }
    >
      <div className="card flush">
        <ResourceTable
          label={t('users.title')}
          columns={columns}
          rows={users.data?.items}
          rowKey={(one) => one.id}
          error={users.error}
          onRetry={() => void users.refetch()}
          empty={<Blank title={t('users.emptyTitle')} help={t('users.emptyHelp')} />}
        />
      </div>
      <Invitations />
      {inviting && <InviteUser role={first} onClose={() => setInviting(false)} />}
      {creating && (
        <CreateUser
          role={first}
          onClose={(made) => {
            setCreating(false)
            setShown(made)
          }}
        />
      )}
      {changing && <ChangeRole user={changing} onClose={() => setChanging(undefined)} />}
      {shown && <SecretDialog title={t('users.generated', { name: shown.name })} help={t('users.generatedHelp')} secret={shown.password} onClose={() => setShown(undefined)} />}
    </Page>
  )
}

function useUserColumns(onPassword: (shown: Shown) => void, onRole: (user: User) => void): Column<User>[] {
  const { t } = useTranslation()
  const confirm = useConfirm()
  const showError = useShowError()
  const self = useSession()?.user.id

  const act = async (work: () => Promise<unknown>, done: string) => {
    try {
      await work()
      message.success(done)
      refresh()
    } catch (err) {
      showError(err)
    }
  }
  const update = (user: User, change: Parameters<typeof accessApi.updateUser>[1]) => act(() => accessApi.updateUser(user.id, change), t('users.saved', { name: user.username }))
  const danger = useDanger()
  const remove = (user: User) =>
    danger({
      title: t('users.deleteTitle', { name: user.username }),
      content: t('users.deleteHelp'),
      action: t('action.delete'),
      work: () => accessApi.deleteUser(user.id),
      done: t('users.deleted', { name: user.username }),
      after: refresh,
    })
  const reset = (user: User) =>
    confirm({
      title: t('users.resetTitle', { name: user.username }),
      content: t('users.resetHelp'),
      okText: t('users.reset'),
      cancelText: t('action.cancel'),
      autoFocusButton: 'cancel',
      onOk: () =>
        act(async () => {
          // An empty one asks the server to make one.
          const { password } = await accessApi.updateUser(user.id, { password: '' })
          if (password) onPassword({ name: user.username, password })
        }, t('users.saved', { name: user.username })),
    })
  return [
    {
      key: 'name',
      title: t('users.username'),
      kind: 'title',
      render: (one) => (
        <span className="row tight">
          <strong>{one.username}</strong> {one.id === self && <span className="label-chip">{t('users.you')}</span>}
        </span>
      ),
    },
    {
      key: 'role',
      title: t('field.role'),
      render: (one) => (
        <span className="row tight">
          <ActionButton size="small" disabled={one.id === self} onClick={() => onRole(one)} aria-label={`${t(`role.${one.role}`)}: ${one.username}`}>
            {t(`role.${one.role}`)}
          </ActionButton>
          <BoundTo names={one.executors} />
        </span>
      ),
    },
    {
      key: 'state',
      title: t('field.state'),
      render: (one) => (one.disabled ? <span className="state st-skipped"><StateIcon name="pause" /> {t('users.disabled')}</span> : <span className="state st-success"><StateIcon name="dot" /> {t('users.active')}</span>),
    },
    { key: 'created', title: t('field.created'), render: (one) => <RelativeTime at={one.createdAt} /> },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      // Nobody locks themselves out.
      render: (one) =>
        one.id === self ? null : (
          <span className="row tight">
            <ActionButton size="small" onClick={() => reset(one)} aria-label={`${t('users.reset')}: ${one.username}`}>
              {t('users.reset')}
            </ActionButton>
            <ActionButton size="small" onClick={() => void update(one, { disabled: !one.disabled })} aria-label={`${t(one.disabled ? 'users.enable' : 'users.disable')}: ${one.username}`}>
              {t(one.disabled ? 'users.enable' : 'users.disable')}
            </ActionButton>
            <ActionButton size="small" danger onClick={() => remove(one)} aria-label={`${t('action.delete')}: ${one.username}`}>
              {t('action.delete')}
            </ActionButton>
          </span>
        ),
    },
  ]
}

interface Fields {
  username: string
  role: Role
  executors?: string[]
  password?: string
}

/** The role of a member, in the whole tenant or for some executors. */
function ChangeRole({ user, onClose }: { user: User; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<Fields>()
  const role = Form.useWatch('role', form) ?? user.role
  const [busy, setBusy] = useState(false)
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      await accessApi.updateUser(user.id, { role: fields.role, executors: fields.executors ?? [] })
      refresh()
      message.success(t('users.saved', { name: user.username }))
      onClose()
    } catch (err) {
      if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('users.roleTitle', { name: user.username })} okText={t('action.save')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ role: user.role, executors: user.executors }} onFinish={submit}>
        <Form.Item name="role" label={t('field.role')}>
          <RoleSelect />
        </Form.Item>
        <ExecutorBound roles={[role]} />
      </Form>
    </Dialog>
  )
}

function CreateUser({ role, onClose }: { role: Role; onClose: (made?: Shown) => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const nameRules = useUserNameRules()
  const [form] = Form.useForm<Fields>()
  const chosen = Form.useWatch('role', form)
  const [busy, setBusy] = useState(false)
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      const user = await accessApi.createUser({ username: fields.username.trim(), role: fields.role, executors: boundOrNone(fields.executors), password: fields.password || undefined })
      refresh()
      message.success(t('users.saved', { name: user.username }))
      onClose(user.password ? { name: user.username, password: user.password } : undefined)
    } catch (err) {
      if (isApiError(err, 'conflict')) form.setFields([{ name: 'username', errors: [t('users.nameTaken')] }])
      else if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('users.create')} okText={t('action.create')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={() => onClose()}>
      <Form form={form} layout="vertical" initialValues={{ role }} onFinish={submit}>
        <Form.Item name="username" label={t('users.username')} extra={t('users.nameHelp')} validateTrigger="onSubmit" rules={nameRules}>
          <Input autoComplete="off" autoCapitalize="none" spellCheck={false} />
        </Form.Item>
        <Form.Item name="role" label={t('field.role')}>
          <RoleSelect />
        </Form.Item>
        <ExecutorBound roles={[chosen ?? role]} />
        <Form.Item name="password" label={t('users.password')} extra={t('users.passwordHelp')} rules={[{ min: 12, message: t('password.short') }]}>
          <Input.Password autoComplete="new-password" />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
