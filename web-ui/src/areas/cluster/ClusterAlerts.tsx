// What keeps the engine from firing, or may: a clock that leapt, a database
// that takes no writes, a setup that endangers the promises.
import { Alert } from 'antd'
import { useTranslation } from 'react-i18next'
import { clusterApi } from './cluster'
import { queryClient } from '../../api/queries'
import type { Cluster } from '../../api/types'
import { humanDuration } from '../../lib/duration'
import { formatWithZone } from '../../lib/time'
import { ActionButton } from '../../ui/ActionButton'
import { useSession, useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { useConfirm } from '../../ui/useConfirm'

export function ClusterAlerts({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation()
  const { database, clock } = cluster
  const writable = database.role === 'primary' && !database.readOnly
  const findings = database.findings.toSorted((a, b) => Number(b.fatal) - Number(a.fatal))
  return (
    <>
      {clock.held && (
        <Alert
          type="error"
          showIcon
          title={t('cluster.clockHeldTitle', { jump: humanDuration(clock.jumpMs, t) })}
          description={
            <div className="stack gap-2 items-start">
              <p>{t('cluster.clockHeldText', { at: clock.heldAt ? formatWithZone(clock.heldAt) : '—' })}</p>
              <ConfirmClock />
            </div>
          }
        />
      )}
      {!writable && (
        <Alert
          type="error"
          showIcon
          title={t('cluster.dbReadOnlyTitle')}
          description={t('cluster.dbReadOnlyText', { role: t(`cluster.role.${database.role}`), mode: t(database.readOnly ? 'cluster.readOnly' : 'cluster.writable') })}
        />
      )}
      {cluster.zonesDiffer && <Alert type="warning" showIcon title={t('cluster.zonesDifferTitle')} description={t('cluster.zonesDifferText')} />}
      {findings.map((one) => (
        <Alert
          key={one.code}
          type={one.fatal ? 'error' : 'warning'}
          showIcon
          title={t(one.fatal ? 'cluster.findingFatal' : 'cluster.finding')}
          description={
            <>
              <span className="mono">{one.code}</span> · {one.message}
            </>
          }
        />
      ))}
    </>
  )
}

function ConfirmClock() {
  const { t } = useTranslation()
  const ask = useConfirm()
  const showError = useShowError()
  if (!useSession()?.user.platformAdmin) return null
  const confirm = () =>
    ask({
      title: t('cluster.confirmTitle'),
      content: t('cluster.confirmHelp'),
      okText: t('cluster.confirm'),
      okButtonProps: { danger: true },
      cancelText: t('action.cancel'),
      onOk: async () => {
        try {
          await clusterApi.confirmClock()
          message.success(t('cluster.confirmed'))
          void queryClient.invalidateQueries({ queryKey: ['cluster'] })
        } catch (err) {
          showError(err)
        }
      },
    })
  return (
    <ActionButton danger onClick={confirm}>
      {t('cluster.confirm')}
    </ActionButton>
  )
}
