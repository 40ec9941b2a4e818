import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, accessQueries, refreshUsers, type Shown } from './access'
import type { User } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { BoundTo } from './BoundTo'
import { useSession, useShowError } from '../../ui/hooks'
import { Invitations } from './Invitations'
import { message } from '../../ui/notices'
import { Page } from '../../ui/Page'
import { PeopleTabs } from './PeopleTabs'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { SecretDialog } from '../../ui/SecretDialog'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { useConfirm } from '../../ui/useConfirm'
import { useDanger } from '../../ui/useDanger'
import { StateIcon } from '../../ui/StateIcon'
import { later } from '../../ui/later'

const InviteUser = later(() => import('./InviteUser'))
const CreateUser = later(() => import('./CreateUser'))

const ChangeRole = later(() => import('./ChangeRole'))

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
      refreshUsers()
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
      after: refreshUsers,
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
