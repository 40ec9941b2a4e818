import { Form, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { executorApi, refreshExecutors } from './executors'
import type { ExecutorDetail } from '../../api/types'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'

export default function CallbacksDialog({ executor, onClose }: { executor: ExecutorDetail; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<{ callbacksTo: string[] }>()
  const [busy, setBusy] = useState(false)
  const submit = async ({ callbacksTo }: { callbacksTo: string[] }) => {
    setBusy(true)
    try {
      await executorApi.allowCallbacks(executor, callbacksTo)
      message.success(t('executors.callbacksSaved', { name: executor.name }))
      refreshExecutors()
      onClose()
    } catch (err) {
      if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('executors.callbacksTo')} okText={t('action.save')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ callbacksTo: executor.callbacksTo }} onFinish={(fields) => void submit(fields)}>
        <Form.Item name="callbacksTo" label={t('executors.callbacksField')} extra={t('executors.callbacksHelp')}>
          <Select mode="tags" open={false} suffixIcon={null} tokenSeparators={[',', ' ']} />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
