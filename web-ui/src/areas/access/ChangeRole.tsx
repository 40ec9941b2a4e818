import { Form } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, refreshUsers } from './access'
import type { User } from '../../api/types'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { ExecutorBound } from './ExecutorBound'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { RoleSelect } from './RoleSelect'

type Fields = Pick<User, 'role'> & { executors?: string[] }

/** The role of a member, in the whole tenant or for some executors. */
export default function ChangeRole({ user, onClose }: { user: User; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<Fields>()
  const role = Form.useWatch('role', form) ?? user.role
  const [busy, setBusy] = useState(false)
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      await accessApi.updateUser(user.id, { role: fields.role, executors: fields.executors ?? [] })
      refreshUsers()
      message.success(t('users.saved', { name: user.username }))
      onClose()
    } catch (err) {
      if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('users.roleTitle', { name: user.username })} okText={t('action.save')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ role: user.role, executors: user.executors }} onFinish={submit}>
        <Form.Item name="role" label={t('field.role')}>
          <RoleSelect />
        </Form.Item>
        <ExecutorBound roles={[role]} />
      </Form>
    </Dialog>
  )
}
