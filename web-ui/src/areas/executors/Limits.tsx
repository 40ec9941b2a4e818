// How many runs of an executor, or of the tenant, go on at once: how full it
// is, and setting it.
import './executors.css'
import { Form, InputNumber } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { limitApi } from './limits'
import { queryClient } from '../../api/queries'
import type { Limit } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { StateIcon } from '../../ui/StateIcon'
import { Meter } from '../../ui/Meter'

/** What is limited, and to how many; 0 = no limit. */
export type Limited = Pick<Limit, 'kind' | 'subject' | 'maxRunning'>

export function LimitButton({ limited }: { limited: Limited }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  return (
    <>
      <ActionButton size="small" onClick={() => setOpen(true)}>
        {t(limited.maxRunning > 0 ? 'action.edit' : 'limits.set')}
        <span className="sr-only">: {limited.subject.name}</span>
      </ActionButton>
      {open && <LimitDialog limited={limited} onClose={() => setOpen(false)} />}
    </>
  )
}

function LimitDialog({ limited, onClose }: { limited: Limited; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const { name, id } = limited.subject
  const [max, setMax] = useState<number | null>(limited.maxRunning || null)
  const [busy, setBusy] = useState(false)
  const submit = async () => {
    setBusy(true)
    try {
      const set = limited.kind === 'tenant' ? limitApi.setTenantLimit : limitApi.setExecutorLimit
      await set(id, max ?? 0)
      message.success(max ? t('limits.saved', { name, max }) : t('limits.removed', { name }))
      void queryClient.invalidateQueries({ queryKey: ['limits'] })
      onClose()
    } catch (err) {
      showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('limits.setTitle', { name })} okText={t('action.save')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={() => void submit()} onCancel={onClose}>
      <Form layout="vertical" onFinish={() => void submit()}>
        <Form.Item label={t('limits.max')} htmlFor="limit-max" extra={t('limits.setHelp')}>
          <InputNumber id="limit-max" min={1} max={100_000} precision={0} value={max} onChange={setMax} placeholder={t('limits.none')} className="full" />
        </Form.Item>
      </Form>
    </Dialog>
  )
}

/** How full it is; runs are counted under a limit only. */
export function Running({ row }: { row: Pick<Limit, 'maxRunning' | 'running'> }) {
  const { t } = useTranslation()
  if (row.maxRunning === 0) return <span className="muted small">{t('limits.unknown')}</span>
  const share = Math.min(100, (row.running / row.maxRunning) * 100)
  return (
    <span className="row tight no-wrap">
      <Meter share={share} />
      <span className="num nowrap">
        {row.running}/{row.maxRunning}
      </span>
      {row.running >= row.maxRunning && <span className="state st-timeout small"><StateIcon name="stop" /> {t('limits.full')}</span>}
    </span>
  )
}

export function Waiting({ row }: { row: Pick<Limit, 'maxRunning' | 'waiting'> }) {
  const { t } = useTranslation()
  if (row.maxRunning === 0) return <span className="muted">—</span>
  return row.waiting > 0 ? (
    <span className="st-queued num">
      … {row.waiting} {t('limits.waitingSome')}
    </span>
  ) : (
    <span className="num">0</span>
  )
}
