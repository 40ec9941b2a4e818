import { Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { refreshTenants } from './access'
import { isApiError } from '../../api/problem'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'

/** As domain.TenantNames of the server. */
const NAME = /^[a-z]([a-z0-9-]{0,62}[a-z0-9])?$/

interface NameProps {
  title: string
  action: string
  initial?: string
  work: (name: string) => Promise<unknown>
  onClose: () => void
}

export function NameDialog({ title, action, initial, work, onClose }: NameProps) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<{ name: string }>()
  const [busy, setBusy] = useState(false)
  const submit = async ({ name }: { name: string }) => {
    setBusy(true)
    try {
      await work(name)
      onClose()
    } catch (err) {
      if (isApiError(err, 'conflict')) form.setFields([{ name: 'name', errors: [t('tenants.nameTaken')] }])
      else if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
    refreshTenants()
  }
  return (
    <Dialog title={title} okText={action} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ name: initial }} onFinish={(fields) => void submit(fields)}>
        <Form.Item
          name="name"
          label={t('field.name')}
          extra={t('tenants.nameHelp')}
          validateTrigger="onSubmit"
          rules={[{ required: true, message: t('field.required') }, { pattern: NAME, message: t('tenants.nameRule') }]}
        >
          <Input maxLength={64} autoComplete="off" autoCapitalize="none" spellCheck={false} />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
