// How much a tenant may have, and has; platform administrators change it.
import { useQuery } from '../../api/useQuery'
import { Button, Form, InputNumber } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { limitApi, limitQueries } from '../executors/limits'
import { queryClient } from '../../api/queries'
import type { Id, Quota } from '../../api/types'
import { Dialog } from '../../ui/Dialog'
import { message } from '../../ui/notices'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { useShowError } from '../../ui/hooks'
import { StateIcon } from '../../ui/StateIcon'
import { Meter } from '../../ui/Meter'

interface Named {
  id: Id
  name: string
}

export function QuotaTable({ tenant, platform }: { tenant: Named; platform: boolean }) {
  const { t } = useTranslation()
  // Everybody may see their own tenant's; only the platform's administrators any.
  const quotas = useQuery(limitQueries.quotas(platform ? tenant.id : undefined))
  const columns: Column<Quota>[] = [
    {
      key: 'kind',
      title: t('quotas.kind'),
      kind: 'title',
      render: (one) => (
        <span>
          <strong>{t(`quotas.kind_${one.kind}`)}</strong>
          <br />
          <span className="muted small">{t(`quotas.about_${one.kind}`)}</span>
        </span>
      ),
    },
    { key: 'used', title: t('quotas.used'), render: (one) => (one.kind === 'api_calls_per_second' ? <span className="muted small">{t('quotas.notCounted')}</span> : <Used quota={one} />) },
    {
      key: 'limit',
      title: t('quotas.limit'),
      render: (one) => (
        <span className="row tight">
          {one.limit > 0 ? <span className="num">{one.limit.toLocaleString()}</span> : <span className="muted">{t('quotas.none')}</span>}
          {one.default && <span className="label-chip">{t('quotas.byDefault')}</span>}
          {one.default && one.limit === 0 && one.kind === 'fires_per_minute' && <span className="muted small">{t('quotas.alone')}</span>}
        </span>
      ),
    },
  ]
  if (platform) columns.push({ key: 'actions', title: t('field.actions'), kind: 'actions', render: (one) => <SetQuota tenant={tenant} quota={one} /> })
  return (
    <div className="card flush">
      <ResourceTable label={t('quotas.title', { name: tenant.name })} columns={columns} rows={quotas.data?.items} rowKey={(one) => one.kind} error={quotas.error} onRetry={() => void quotas.refetch()} empty={null} />
    </div>
  )
}

function Used({ quota: { used, limit } }: { quota: Quota }) {
  const { t } = useTranslation()
  const share = limit > 0 ? Math.min(100, (used / limit) * 100) : 0
  return (
    <span className="row tight no-wrap">
      {limit > 0 && (
        <Meter share={share} />
      )}
      <span className="num nowrap">{used.toLocaleString()}</span>
      {limit > 0 && used >= limit && <span className="state st-timeout small"><StateIcon name="stop" /> {t('limits.full')}</span>}
    </span>
  )
}

function SetQuota({ tenant, quota }: { tenant: Named; quota: Quota }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [open, setOpen] = useState(false)
  const [limit, setLimit] = useState<number | null>(quota.default ? null : quota.limit)
  const [busy, setBusy] = useState(false)
  const kind = t(`quotas.kind_${quota.kind}`)
  const submit = async () => {
    setBusy(true)
    try {
      await limitApi.setQuota(tenant.id, quota.kind, limit ?? -1)
      message.success(t('quotas.saved', { kind }))
      void queryClient.invalidateQueries({ queryKey: ['quotas'] })
      setOpen(false)
    } catch (err) {
      showError(err)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <Button size="small" onClick={() => setOpen(true)}>
        {t('quotas.change')}
        <span className="sr-only">: {kind}</span>
      </Button>
      {open && (
        <Dialog title={t('quotas.setTitle', { name: tenant.name, kind })} okText={t('action.save')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={() => void submit()} onCancel={() => setOpen(false)}>
          <Form layout="vertical" onFinish={() => void submit()}>
            <Form.Item label={t('quotas.limit')} htmlFor="quota-limit" extra={t('quotas.setHelp')}>
              <InputNumber id="quota-limit" min={0} max={quota.kind === 'stored_bytes' ? 2 ** 50 : 100_000_000} precision={0} value={limit} onChange={setLimit} className="full" />
            </Form.Item>
          </Form>
        </Dialog>
      )}
    </>
  )
}

/** Shows a tenant's quotas in a dialog. */
export function QuotasButton({ tenant }: { tenant: Named }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button size="small" onClick={() => setOpen(true)} aria-label={`${t('quotas.open')}: ${tenant.name}`}>
        {t('quotas.open')}
      </Button>
      {open && (
        <Dialog title={t('quotas.title', { name: tenant.name })} footer={null} width={720} onCancel={() => setOpen(false)}>
          <p className="muted">{t('quotas.help')}</p>
          <QuotaTable tenant={tenant} platform />
        </Dialog>
      )}
    </>
  )
}
