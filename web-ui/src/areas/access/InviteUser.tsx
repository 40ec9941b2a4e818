import { Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, refreshInvitations } from './access'
import type { Role } from '../../api/types'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { boundOrNone, ExecutorBound } from './ExecutorBound'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { RoleSelect } from './RoleSelect'
import { useUserNameRules } from './userNames'

interface InviteFields {
  username: string
  role: Role
  executors?: string[]
}

export default function InviteUser({ role, onClose }: { role: Role; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const nameRules = useUserNameRules()
  const [form] = Form.useForm<InviteFields>()
  const chosen = Form.useWatch('role', form)
  const [busy, setBusy] = useState(false)
  const submit = async (fields: InviteFields) => {
    setBusy(true)
    try {
      const made = await accessApi.createInvitation({ username: fields.username.trim(), role: fields.role, executors: boundOrNone(fields.executors) })
      refreshInvitations()
      message.success(t('invitations.sent', { name: made.username }))
      onClose()
    } catch (err) {
      if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('invitations.invite')} okText={t('invitations.invite')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <p className="muted">{t('invitations.help')}</p>
      <Form form={form} layout="vertical" initialValues={{ role }} onFinish={submit}>
        <Form.Item name="username" label={t('users.username')} extra={t('users.nameHelp')} validateTrigger="onSubmit" rules={nameRules}>
          <Input autoComplete="off" autoCapitalize="none" spellCheck={false} />
        </Form.Item>
        <Form.Item name="role" label={t('field.role')}>
          <RoleSelect />
        </Form.Item>
        <ExecutorBound roles={[chosen ?? role]} />
      </Form>
    </Dialog>
  )
}
