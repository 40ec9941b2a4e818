import { Form, Input, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, refreshKeys } from './access'
import type { KeyRole } from '../../api/types'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { boundOrNone, ExecutorBound } from './ExecutorBound'
import { useShowError } from '../../ui/hooks'
import { expiryIn, useExpiryOptions } from '../executors/expiry'

interface Fields {
  name: string
  roles: KeyRole[]
  executors?: string[]
  targets?: string[]
  days: number
}

/** The form has a list of roles, targets for handlers, and days for the instant. */
const FIELDS: Record<string, string> = { role: 'roles', callHandlers: 'targets', expiresAt: 'days' }

const fieldOfKey = ([first = '']: string[]) => [FIELDS[first] ?? first]

const ROLES: KeyRole[] = ['caller', 'timer', 'viewer', 'manager', 'operator', 'editor', 'scripter', 'admin']

const FIRST_ROLES: KeyRole[] = ['operator']

export default function CreateKey({ onClose }: { onClose: (secret?: string) => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const expiry = useExpiryOptions()
  const [form] = Form.useForm<Fields>()
  const [busy, setBusy] = useState(false)
  const roles = Form.useWatch('roles', form) ?? FIRST_ROLES // not known before the form is drawn
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      const key = await accessApi.createApiKey({
        name: fields.name.trim(),
        role: fields.roles.join('+'),
        executors: boundOrNone(fields.executors),
        callHandlers: boundOrNone(fields.targets),
        expiresAt: expiryIn(fields.days),
      })
      refreshKeys()
      onClose(key.secret)
    } catch (err) {
      if (!complainAt(form, err, fieldOfKey)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('keys.create')} okText={t('action.create')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={() => onClose()}>
      <Form form={form} layout="vertical" initialValues={{ roles: FIRST_ROLES, days: 365 }} onFinish={submit}>
        <Form.Item name="name" label={t('field.name')} rules={[{ required: true, whitespace: true, message: t('field.required') }]}>
          <Input maxLength={64} autoComplete="off" autoFocus />
        </Form.Item>
        <Form.Item name="roles" label={t('field.role')} rules={[{ required: true, message: t('field.required') }]}>
          <Select
            mode="multiple"
            options={ROLES.map((role) => ({ value: role, label: t(`role.${role}`) }))}
            optionRender={(option) => (
              <div>
                {option.label}
                <div className="muted small">{t(`role.${option.value as KeyRole}Help`)}</div>
              </div>
            )}
          />
        </Form.Item>
        <ExecutorBound roles={roles} />
        {roles.every((role) => role === 'caller' || role === 'timer') && (
          <Form.Item name="targets" label={t('keys.targets')} extra={t('keys.targetsHelp')}>
            <Select mode="tags" maxCount={30} tokenSeparators={[',', ' ']} open={false} suffixIcon={null} />
          </Form.Item>
        )}
        <Form.Item name="days" label={t('tokens.expiresIn')}>
          <Select options={expiry} />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
