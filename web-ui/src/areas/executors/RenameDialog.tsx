import { Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { executorApi, refreshExecutors } from './executors'
import type { ExecutorDetail } from '../../api/types'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { useNameRules } from './names'

export default function RenameDialog({ executor, onClose }: { executor: ExecutorDetail; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const nameRules = useNameRules()
  const [form] = Form.useForm<{ name: string }>()
  const [busy, setBusy] = useState(false)
  const submit = async ({ name }: { name: string }) => {
    setBusy(true)
    try {
      await executorApi.rename(executor, name.trim())
      message.success(t('executors.renamed', { name: name.trim() }))
      refreshExecutors()
      onClose()
    } catch (err) {
      if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('executors.renameTitle', { name: executor.name })} okText={t('executors.rename')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ name: executor.name }} onFinish={(fields) => void submit(fields)}>
        <Form.Item name="name" label={t('field.name')} extra={t('executors.renameHelp')} validateTrigger="onSubmit" rules={nameRules}>
          <Input autoComplete="off" spellCheck={false} />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
