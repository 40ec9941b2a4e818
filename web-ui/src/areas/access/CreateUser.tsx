import { Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, refreshUsers, type Shown } from './access'
import { isApiError } from '../../api/problem'
import type { Role } from '../../api/types'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { boundOrNone, ExecutorBound } from './ExecutorBound'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { RoleSelect } from './RoleSelect'
import { useUserNameRules } from './userNames'

interface Fields {
  username: string
  role: Role
  executors?: string[]
  password?: string
}

export default function CreateUser({ role, onClose }: { role: Role; onClose: (made?: Shown) => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const nameRules = useUserNameRules()
  const [form] = Form.useForm<Fields>()
  const chosen = Form.useWatch('role', form)
  const [busy, setBusy] = useState(false)
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      const user = await accessApi.createUser({ username: fields.username.trim(), role: fields.role, executors: boundOrNone(fields.executors), password: fields.password || undefined })
      refreshUsers()
      message.success(t('users.saved', { name: user.username }))
      onClose(user.password ? { name: user.username, password: user.password } : undefined)
    } catch (err) {
      if (isApiError(err, 'conflict')) form.setFields([{ name: 'username', errors: [t('users.nameTaken')] }])
      else if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('users.create')} okText={t('action.create')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={() => onClose()}>
      <Form form={form} layout="vertical" initialValues={{ role }} onFinish={submit}>
        <Form.Item name="username" label={t('users.username')} extra={t('users.nameHelp')} validateTrigger="onSubmit" rules={nameRules}>
          <Input autoComplete="off" autoCapitalize="none" spellCheck={false} />
        </Form.Item>
        <Form.Item name="role" label={t('field.role')}>
          <RoleSelect />
        </Form.Item>
        <ExecutorBound roles={[chosen ?? role]} />
        <Form.Item name="password" label={t('users.password')} extra={t('users.passwordHelp')} rules={[{ min: 12, message: t('password.short') }]}>
          <Input.Password autoComplete="new-password" />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
