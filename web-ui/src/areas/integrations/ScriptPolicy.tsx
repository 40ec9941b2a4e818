// What agents may do for the tenant: everybody sees it, platform
// administrators change it.
import { useQuery } from '../../api/useQuery'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { scriptQueries } from './scripts'
import { SCRIPT_LANGUAGES } from './scriptWords'
import { ActionButton } from '../../ui/ActionButton'
import { useSession } from '../../ui/hooks'
import { ErrorState } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { later } from '../../ui/later'

const PolicyDialog = later(() => import('./ScriptPolicyDialog'))

export function ScriptPolicyCard() {
  const { t } = useTranslation()
  const policy = useQuery(scriptQueries.scriptPolicy())
  const platform = useSession()?.user.platformAdmin ?? false
  const [editing, setEditing] = useState(false)
  if (policy.error && !policy.data) return <ErrorState error={policy.error} onRetry={() => void policy.refetch()} />
  const { data } = policy
  const on = data ? [...data.languages.map((one) => SCRIPT_LANGUAGES[one]), ...(data.http ? [t('scripts.policyHTTP')] : [])] : []
  return (
    <section className="card" aria-label={t('scripts.policy')}>
      <div className="card-head">
        <h2>{t('scripts.policy')}</h2>
        {platform && data && <ActionButton onClick={() => setEditing(true)}>{t('scripts.policyChange')}</ActionButton>}
      </div>
      {data ? (
        <>
          <p>
            <strong>{on.length > 0 ? on.join(', ') : t('scripts.policyOff')}</strong>{' '}
            <span className="muted">
              {data.createdAt ? (
                <>
                  {t('scripts.policyBy', { who: data.createdBy })} · <RelativeTime at={data.createdAt} /> {data.note && `· ${data.note}`}
                </>
              ) : (
                t('scripts.policyNever')
              )}
            </span>
          </p>
          <p className="muted small">
            {t('scripts.policyHelp')} {!platform && t('scripts.policyAsk')}
          </p>
        </>
      ) : (
        <span className="skeleton" />
      )}
      {editing && data && <PolicyDialog policy={data} onClose={() => setEditing(false)} />}
    </section>
  )
}
