import { useQuery } from '../../api/useQuery'
import { Button } from 'antd'
import { useTranslation } from 'react-i18next'
import { api } from '../../api/endpoints'
import { queries, queryClient } from '../../api/queries'
import type { MyInvitation } from '../../api/types'
import { BoundTo } from './BoundTo'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { Page } from '../../ui/Page'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'

/** What other tenants offer the own account: nothing changes without an answer. */
export function InvitationsPage() {
  const { t } = useTranslation()
  const showError = useShowError()
  const mine = useQuery(queries.myInvitations())
  const answer = async (work: () => Promise<unknown>, done: string) => {
    try {
      await work()
      message.success(done)
      for (const key of ['my-invitations', 'me']) void queryClient.invalidateQueries({ queryKey: [key] })
    } catch (err) {
      showError(err)
      void mine.refetch()
    }
  }
  const columns: Column<MyInvitation>[] = [
    { key: 'tenant', title: t('user.tenant'), kind: 'title', render: (one) => <strong>{one.tenant.name}</strong> },
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
        <span className="row tight">
          <Button
            size="small"
            type="primary"
            onClick={() => void answer(() => api.acceptInvitation(one.id), t('invitations.accepted', { name: one.tenant.name }))}
            aria-label={`${t('invitations.accept')}: ${one.tenant.name}`}
          >
            {t('invitations.accept')}
          </Button>
          <Button size="small" onClick={() => void answer(() => api.declineInvitation(one.id), t('invitations.declined'))} aria-label={`${t('invitations.decline')}: ${one.tenant.name}`}>
            {t('invitations.decline')}
          </Button>
        </span>
      ),
    },
  ]
  return (
    <Page title={t('invitations.title')} help={t('invitations.mineHelp')}>
      <div className="card flush">
        <ResourceTable
          label={t('invitations.title')}
          columns={columns}
          rows={mine.data?.items}
          rowKey={(one) => one.id}
          error={mine.error}
          onRetry={() => void mine.refetch()}
          empty={<Blank title={t('invitations.none')} />}
        />
      </div>
    </Page>
  )
}
