import { useTranslation } from 'react-i18next'
import type { AlertRuleSpec } from '../../api/types'
import { wireDuration } from '../../lib/duration'
import { Listed } from './AlertWords'

/** "3 of the last 5 runs ended badly" */
export function ConditionText({ condition: one }: { condition: AlertRuleSpec['condition'] }) {
  const { t } = useTranslation()
  const key = one.kind === 'long' && one.factor ? 'longFactor' : one.kind
  return t(`alerts.rules.says.${key}`, { failures: one.failures, of: one.of, keyword: one.keyword, after: wireDuration(one.after, t), factor: one.factor })
}

/** Who is told, and who later. */
export function ToldText({ rule: one }: { rule: Pick<AlertRuleSpec, 'mute' | 'channels' | 'escalateAfter' | 'escalateTo'> }) {
  const { t } = useTranslation()
  if (one.mute) return t('alerts.rules.muted')
  return (
    <div>
      {one.channels?.length ? <Listed>{one.channels}</Listed> : t('alerts.rules.jobsOwn')}
      {one.escalateAfter && one.escalateTo?.length ? (
        <div>
          <span className="muted small">{t('alerts.rules.escalates', { after: wireDuration(one.escalateAfter, t) })}</span> <Listed>{one.escalateTo}</Listed>
        </div>
      ) : null}
    </div>
  )
}
