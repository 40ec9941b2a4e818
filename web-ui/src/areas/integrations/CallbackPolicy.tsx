// Whom the admin nodes may call for the tenant: everybody sees it, platform
// administrators change it.
import { useQuery } from '../../api/useQuery'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { scriptApi, scriptQueries } from './scripts'
import { setCallbacks } from './setCallbacks'
import { connectionQueries } from './connections'
import { queries } from '../../api/queries'
import type { CallbackSecret, ScriptPolicy } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { ByWhom } from '../../ui/ByWhom'
import { Fact } from '../../ui/Fact'
import { useCan, useSession, useShowError } from '../../ui/hooks'
import { LinkButton } from '../../ui/LinkButton'
import { message } from '../../ui/notices'
import { SecretDialog } from '../../ui/SecretDialog'
import { ErrorState } from '../../ui/States'
import { useConfirm } from '../../ui/useConfirm'
import { later } from '../../ui/later'

const PolicyDialog = later(() => import('./CallbackPolicyDialog'))

export function CallbackPolicyCard() {
  const { t } = useTranslation()
  const policy = useQuery(scriptQueries.scriptPolicy())
  const platform = useSession()?.user.platformAdmin ?? false
  const editor = useCan('editor')
  const executors = useQuery({ ...queries.executors({ q: 'carillon' }), enabled: editor && Boolean(policy.data?.callbacks) })
  const [editing, setEditing] = useState(false)
  if (policy.error && !policy.data) return <ErrorState error={policy.error} onRetry={() => void policy.refetch()} />
  const { data } = policy
  const builtIn = executors.data?.items.find((one) => one.kind === 'built_in')
  return (
    <section className="card" aria-label={t('callbacks.title')}>
      <div className="card-head">
        <h2>{t('callbacks.title')}</h2>
        <div className="row">
          {data?.callbacks && builtIn && (
            <LinkButton to="/jobs/new" search={{ executorId: builtIn.id, handler: 'http' }}>
              {t('callbacks.job')}
            </LinkButton>
          )}
          {data && <Secret policy={data} />}
          {platform && data && (
            <ActionButton type={data.callbacks ? 'default' : 'primary'} onClick={() => setEditing(true)}>
              {t(data.callbacks ? 'callbacks.change' : 'callbacks.allow')}
            </ActionButton>
          )}
        </div>
      </div>
      <p className="muted">{t('callbacks.help')}</p>
      {data ? <Facts policy={data} mayAsk={!platform} /> : <span className="skeleton" />}
      {editing && data && <PolicyDialog policy={data} onClose={() => setEditing(false)} />}
    </section>
  )
}

function Facts({ policy, mayAsk }: { policy: ScriptPolicy; mayAsk: boolean }) {
  const { t } = useTranslation()
  const { callbacks } = policy
  return (
    <>
      {callbacks ? (
        <dl className="facts above-3">
          <Fact label={t('callbacks.hosts')}>
            <span className="mono">{callbacks.hosts.join(', ')}</span>
          </Fact>
          <Fact label={t('callbacks.maxTimeout')}>{callbacks.maxTimeout}</Fact>
          <Fact label={t('callbacks.perHost')}>{callbacks.perHost}</Fact>
          <Fact label={t('callbacks.decided')}>
            <ByWhom who={policy.createdBy} at={policy.createdAt ?? undefined} />
          </Fact>
          <Fact label={t('callbacks.note')}>{policy.note || <span className="muted">{t('callbacks.noNote')}</span>}</Fact>
        </dl>
      ) : (
        <p className="above-3">
          <strong>{t('callbacks.off')}</strong> {mayAsk && <span className="muted">{t('callbacks.offAsk')}</span>}
        </p>
      )}
      {policy.revision > 0 && <History />}
    </>
  )
}

/** It is asked for when somebody looks. */
function History() {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  const history = useQuery({ ...connectionQueries.policies(), enabled: open })
  return (
    <details className="above-3" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('callbacks.history')}</summary>
      <ul className="plain-list">
        {history.data?.items.map((one) => (
          <li key={one.revision}>
            <ByWhom who={one.createdBy} at={one.createdAt ?? undefined} />
            <span className="mono">{one.callbacks ? `${one.callbacks.hosts.join(', ')} · ${one.callbacks.maxTimeout} · ${one.callbacks.perHost}` : t('callbacks.nothing')}</span>
            <span className="muted">{one.note}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}

/** Administrators read it for those who receive calls; the platform's make a new one. */
function Secret({ policy }: { policy: ScriptPolicy }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const confirm = useConfirm()
  const admin = useCan('admin')
  const platform = useSession()?.user.platformAdmin ?? false
  const [shown, setShown] = useState<CallbackSecret>()
  const { callbacks } = policy
  if (!callbacks) return null
  const renew = () =>
    confirm({
      title: t('callbacks.secretNewTitle'),
      content: t('callbacks.secretNewHelp'),
      okText: t('callbacks.secretNew'),
      okButtonProps: { danger: true },
      cancelText: t('action.cancel'),
      onOk: async () => {
        try {
          await setCallbacks({ ...callbacks, newSecret: true }, policy.note)
          message.success(t('callbacks.secretNewDone'))
          setShown(await scriptApi.callbackSecret())
        } catch (err) {
          showError(err)
        }
      },
    })
  return (
    <>
      {admin && <ActionButton onClick={() => void scriptApi.callbackSecret().then(setShown, showError)}>{t('callbacks.secretShow')}</ActionButton>}
      {platform && <ActionButton onClick={renew}>{t('callbacks.secretNew')}</ActionButton>}
      {shown && <SecretDialog title={t('callbacks.secret')} help={t('callbacks.secretHelp', { id: shown.keyId })} secret={shown.secret} onClose={() => setShown(undefined)} />}
    </>
  )
}
