// Where callbacks of jobs that the code of an executor declares may go.
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { ExecutorDetail } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { useCan } from '../../ui/hooks'
import { later } from '../../ui/later'

const CallbacksDialog = later(() => import('./CallbacksDialog'))

export function ExecutorCallbacks({ executor }: { executor: ExecutorDetail }) {
  const { t } = useTranslation()
  const canEdit = useCan('editor')
  const [editing, setEditing] = useState(false)
  const reach = executor.callbacksTo
  if (executor.kind === 'built_in' || (reach.length === 0 && !canEdit)) return null
  return (
    <section className="card row" aria-label={t('executors.callbacksTo')}>
      <h2 className="no-margin">{t('executors.callbacksTo')}</h2>
      {reach.length > 0 ? <span className="mono">{reach.join(', ')}</span> : <span className="muted">{t('executors.callbacksOwn')}</span>}
      {canEdit && <ActionButton onClick={() => setEditing(true)}>{t('action.edit')}</ActionButton>}
      {editing && <CallbacksDialog executor={executor} onClose={() => setEditing(false)} />}
    </section>
  )
}
