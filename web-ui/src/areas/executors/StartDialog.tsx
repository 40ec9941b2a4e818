import { Form, Input, Radio } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { maintenanceApi, refreshMaintenance, type Scope } from './maintenance'
import type { MaintenanceRequest } from '../../api/types'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { EndFields, endOf, type EndFieldsValue } from '../../ui/EndFields'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'

const MODES = ['wait', 'skip', 'continue'] as const

interface Fields extends EndFieldsValue {
  mode: MaintenanceRequest['mode']
  reason?: string
}

export default function StartDialog({ scope, what, onClose }: { scope: Scope; what: string; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<Fields>()
  const [busy, setBusy] = useState(false)
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      const until = endOf(fields)
      await maintenanceApi.start(scope, { mode: fields.mode, reason: fields.reason?.trim() ?? '', ...(until ? { until } : {}) })
      message.success(t('maintenance.started'))
      refreshMaintenance()
      onClose()
    } catch (err) {
      if (!complainAt(form, err, ([first = '']) => [first === 'until' && form.getFieldValue('lasts') !== 'at' ? 'lasts' : first])) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={what} okText={t('maintenance.start')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy, danger: true }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ mode: 'wait', lasts: 'open' }} onFinish={(fields) => void submit(fields)}>
        <Form.Item name="mode" label={t('maintenance.mode')}>
          <Radio.Group>
            <div className="stack gap-2">
              {MODES.map((mode) => (
                <Radio key={mode} value={mode}>
                  {t(`maintenance.${mode}`)}
                  <div className="muted small">{t(`maintenance.${mode}Help`)}</div>
                </Radio>
              ))}
            </div>
          </Radio.Group>
        </Form.Item>
        <EndFields open={t('maintenance.open')} />
        <Form.Item name="reason" label={t('field.reason')} extra={t('maintenance.reasonHelp')}>
          <Input maxLength={500} autoComplete="off" />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
