import { useNavigate } from '@tanstack/react-router'
import { Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { isApiError } from '../../api/problem'
import { queryClient } from '../../api/queries'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { useNameRules } from './names'
import { executorApi } from './executors'

export default function CreateExecutor({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const showError = useShowError()
  const nameRules = useNameRules()
  const [form] = Form.useForm<{ name: string; description?: string }>()
  const [busy, setBusy] = useState(false)
  const submit = async (fields: { name: string; description?: string }) => {
    setBusy(true)
    try {
      const executor = await executorApi.create({ name: fields.name.trim(), description: fields.description?.trim() || undefined })
      void queryClient.invalidateQueries({ queryKey: ['executors'] })
      onClose()
      await navigate({ to: '/executors/$executorId', params: { executorId: executor.id } })
    } catch (err) {
      if (isApiError(err, 'conflict')) form.setFields([{ name: 'name', errors: [t('executors.nameTaken')] }])
      else if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('executors.createTitle')} okText={t('action.create')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" onFinish={submit}>
        <Form.Item name="name" label={t('executors.name')} extra={t('executors.nameHelp')} validateTrigger="onSubmit" rules={nameRules}>
          <Input autoComplete="off" autoFocus spellCheck={false} />
        </Form.Item>
        <Form.Item name="description" label={t('field.description')}>
          <Input maxLength={4096} />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
