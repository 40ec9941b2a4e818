import { Checkbox, Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { refreshScripts, scriptApi } from './scripts'
import type { ScriptLanguage, ScriptPolicy } from '../../api/types'
import { languageOptions } from './scriptWords'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'

interface Fields {
  languages: ScriptLanguage[]
  http: boolean
  note: string
}

export default function PolicyDialog({ policy, onClose }: { policy: ScriptPolicy; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<Fields>()
  const [busy, setBusy] = useState(false)
  const save = async (fields: Fields) => {
    setBusy(true)
    try {
      await scriptApi.setScriptPolicy(fields)
      message.success(t('scripts.policySaved'))
      refreshScripts()
      onClose()
    } catch (err) {
      if (!complainAt(form, err)) showError(err)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('scripts.policy')} okText={t('action.save')} cancelText={t('action.cancel')} confirmLoading={busy} onOk={() => form.submit()} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ languages: policy.languages, http: policy.http, note: '' }} onFinish={(fields) => void save(fields)}>
        <Form.Item name="languages" label={t('scripts.policyScripts')}>
          <Checkbox.Group options={languageOptions} />
        </Form.Item>
        <Form.Item name="http" valuePropName="checked">
          <Checkbox>{t('scripts.policyHTTP')}</Checkbox>
        </Form.Item>
        <Form.Item name="note" label={t('scripts.note')}>
          <Input maxLength={1024} autoComplete="off" />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
