// A warning below the receivers of a job's alerts, while there is none.
import { Link } from '@tanstack/react-router'
import { Alert, Form } from 'antd'
import { useTranslation } from 'react-i18next'
import { alertReceivers } from '../../../api/alertReceivers'
import { useQuery } from '../../../api/useQuery'
import type { JobFields } from './jobForm'

/** Whether the job wants alerts and names no receiver: only rules and default channels are left. */
export function namesNobody({ alert, owner }: Pick<JobFields, 'alert' | 'owner'>): boolean {
  return (alert.onFailure || alert.includeNoExecutor) && !owner.email.trim() && !alert.webhookUrl.trim() && !alert.emails.some((one) => one.trim())
}

export function NobodyTold() {
  const { t } = useTranslation()
  const fields = Form.useWatch((all: JobFields) => ({ alert: all.alert, owner: all.owner }))
  const unnamed = Boolean(fields?.alert && fields.owner && namesNobody(fields))
  const settings = useQuery({ ...alertReceivers.settings(), enabled: unnamed }).data
  const rules = useQuery({ ...alertReceivers.rules(), enabled: unnamed && settings?.reachesNobody === true }).data
  if (!unnamed || !settings?.reachesNobody || !rules) return null
  return (
    <Alert
      type="warning"
      showIcon
      className="above-3"
      title={t(rules.items.length > 0 ? 'jobs.form.onlyRulesTell' : 'jobs.form.nobodyTold')}
      description={
        <>
          {t('jobs.form.nobodyToldHelp')} <Link to="/settings/notifications/rules">{t('alerts.rules.defaultChannels')}</Link>
        </>
      }
    />
  )
}
