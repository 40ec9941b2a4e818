import { Form, Input, InputNumber } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { setCallbacks } from './setCallbacks'
import type { ScriptPolicy } from '../../api/types'
import { linesOf } from './connectionForm'
import { parseDuration } from '../../lib/duration'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'

interface Fields {
  hosts: string
  maxTimeout: string
  perHost: number | null
  note: string
}

export default function PolicyDialog({ policy, onClose }: { policy: ScriptPolicy; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<Fields>()
  const [busy, setBusy] = useState(false)
  const { callbacks } = policy
  const save = async ({ hosts, maxTimeout, perHost, note }: Fields) => {
    setBusy(true)
    try {
      await setCallbacks({ hosts: linesOf(hosts), maxTimeout: maxTimeout.trim(), ...(perHost ? { perHost } : {}) }, note)
      message.success(t('callbacks.saved'))
      onClose()
    } catch (err) {
      if (!complainAt(form, err, (path) => path.slice(-1))) showError(err)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('callbacks.formTitle')} okText={t('action.save')} cancelText={t('action.cancel')} confirmLoading={busy} onOk={() => form.submit()} onCancel={onClose}>
      <p className="muted">{t('callbacks.formHelp')}</p>
      <Form
        form={form}
        layout="vertical"
        initialValues={{ hosts: callbacks?.hosts.join('\n') ?? '', maxTimeout: callbacks?.maxTimeout ?? '30s', perHost: callbacks?.perHost ?? 32, note: '' } satisfies Fields}
        onFinish={(fields) => void save(fields)}
      >
        <Form.Item name="hosts" label={t('callbacks.hostsField')} extra={t('callbacks.hostsHelp')}>
          <Input.TextArea className="mono" autoSize={{ minRows: 2, maxRows: 8 }} spellCheck={false} placeholder="api.example.com" />
        </Form.Item>
        <div className="form-fields">
          <Form.Item
            name="maxTimeout"
            label={t('callbacks.maxTimeoutField')}
            extra={t('callbacks.maxTimeoutHelp')}
            rules={[{ validator: (_, value: string) => (parseDuration(value) >= 0 ? Promise.resolve() : Promise.reject(new Error(t('jobs.form.durationBad')))) }]}
          >
            <Input className="mono" maxLength={32} autoComplete="off" />
          </Form.Item>
          <Form.Item name="perHost" label={t('callbacks.perHostField')} extra={t('callbacks.perHostHelp')}>
            <InputNumber min={1} max={512} precision={0} className="full" />
          </Form.Item>
        </div>
        <Form.Item name="note" label={t('callbacks.note')} extra={t('callbacks.noteHelp')}>
          <Input maxLength={1024} autoComplete="off" />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
