// Which processes and certificates of an executor are kept out, whatever they show.
import { useQuery } from '../../api/useQuery'
import { useTranslation } from 'react-i18next'
import { joiningApi, joiningQueries } from './joining'
import { queries, queryClient } from '../../api/queries'
import type { Denial, Id } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { useShowError } from '../../ui/hooks'
import { ByWhom } from '../../ui/ByWhom'
import { message } from '../../ui/notices'
import { ResourceTable, type Column } from '../../ui/ResourceTable'

const refresh = (id: Id) => void queryClient.invalidateQueries({ queryKey: queries.executor(id).queryKey })

export function Denials({ executorId }: { executorId: Id }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const denials = useQuery(joiningQueries.denials(executorId))
  const allow = async (one: Denial) => {
    try {
      await joiningApi.deleteDenial(executorId, one.id)
      message.success(t('denials.allowed'))
      refresh(executorId)
    } catch (err) {
      showError(err)
    }
  }
  const columns: Column<Denial>[] = [
    {
      key: 'who',
      title: t('denials.who'),
      kind: 'title',
      render: (one) => (
        <div className="any-wrap">
          <strong>{one.instance || t(`denials.${one.kind}`)}</strong>
          <div className="muted small mono">{one.subject}</div>
        </div>
      ),
    },
    { key: 'why', title: t('denials.reason'), render: (one) => one.reason || <span className="muted">—</span> },
    {
      key: 'by',
      title: t('field.created'),
      render: (one) => <ByWhom who={one.createdBy} at={one.createdAt} />,
    },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <ActionButton size="small" onClick={() => void allow(one)} aria-label={`${t('denials.allow')}: ${one.instance || one.subject}`}>
          {t('denials.allow')}
        </ActionButton>
      ),
    },
  ]
  return (
    <section className="card flush" aria-label={t('denials.title')}>
      <div className="card-head">
        <div>
          <h2>{t('denials.title')}</h2>
          <p className="muted small">{t('denials.help')}</p>
        </div>
      </div>
      <ResourceTable
        label={t('denials.title')}
        columns={columns}
        rows={denials.data?.items}
        rowKey={(one) => one.id}
        error={denials.error}
        onRetry={() => void denials.refetch()}
        empty={<p className="muted empty-line">{t('denials.none')}</p>}
      />
    </section>
  )
}
