import './executors.css'
import { Form, InputNumber } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { limitApi } from './limits'
import { queryClient } from '../../api/queries'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import type { Limited } from './Limits'

export default function LimitDialog({ limited, onClose }: { limited: Limited; onClose: () => void }) {
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
