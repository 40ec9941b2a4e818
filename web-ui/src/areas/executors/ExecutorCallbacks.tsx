// Where callbacks of jobs that the code of an executor declares may go.
import { Form, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { executorApi, refreshExecutors } from './executors'
import type { ExecutorDetail } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useCan, useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'

export function ExecutorCallbacks({ executor }: { executor: ExecutorDetail }) {
  const { t } = useTranslation()
  const canEdit = useCan('editor')
  const [editing, setEditing] = useState(false)
  const reach = executor.callbacksTo
  if (executor.kind === 'built_in' || (reach.length === 0 && !canEdit)) return null
  return (
    <section className="card row" aria-label={t('executors.callbacksTo')}>
      <h2 className="no-margin">{t('executors.callbacksTo')}</h2>
      {reach.length > 0 ? <span className="mono">{reach.join(', ')}</span> : <span className="muted">{t('executors.callbacksOwn')}</span>}
      {canEdit && <ActionButton onClick={() => setEditing(true)}>{t('action.edit')}</ActionButton>}
      {editing && <CallbacksDialog executor={executor} onClose={() => setEditing(false)} />}
    </section>
  )
}

function CallbacksDialog({ executor, onClose }: { executor: ExecutorDetail; onClose: () => void }) {
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
