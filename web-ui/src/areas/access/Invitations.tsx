// Inviting an account of another tenant, for the users' page.
import { useQuery } from '../../api/useQuery'
import { Button } from 'antd'
import { useTranslation } from 'react-i18next'
import { accessApi, accessQueries, refreshInvitations } from './access'
import type { Invitation } from '../../api/types'
import { BoundTo } from './BoundTo'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'

export function Invitations() {
  const { t } = useTranslation()
  const showError = useShowError()
  const invitations = useQuery(accessQueries.invitations())
  if (invitations.data?.items.length === 0) return null
  const takeBack = async (one: Invitation) => {
    try {
      await accessApi.deleteInvitation(one.id)
      message.success(t('invitations.takenBack', { name: one.username }))
      refreshInvitations()
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
