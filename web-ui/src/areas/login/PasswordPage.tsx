// Changing the own password: by wish, or because the first one was made by
// the server.
import { Link, useRouter, useSearch } from '@tanstack/react-router'
import { Alert, Button, Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../api/endpoints'
import { isApiError } from '../../api/problem'
import { getSession, refreshSession } from '../../api/session'
import { Gate } from './Gate'
import { useErrorText, useSession } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { basePath } from '../../lib/base'

const MIN_LENGTH = 12

interface Fields {
  current: string
  next: string
  again: string
}

export function PasswordPage() {
  const { t } = useTranslation()
  const { next } = useSearch({ from: '/password' })
  const session = useSession()
  const router = useRouter()
  const errorText = useErrorText()
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const forced = session?.user.mustChangePassword ?? false
  const username = session?.user.username ?? ''
  const tenant = session?.tenant.name

  const submit = async (fields: Fields) => {
    setBusy(true)
    setError('')
    try {
      await api.changePassword(fields.current, fields.next)
      // The token still says "must change"; a server which ends all sessions
      // with the old password refuses the refresh, then we sign in anew.
      await refreshSession().catch(() => null)
      if (!getSession() || getSession()?.user.mustChangePassword) await api.login(username, fields.next, tenant)
      message.success(t('password.done'))
      router.history.push(basePath + (next ?? '/overview'))
    } catch (err) {
      const item = isApiError(err) ? (err.itemAt('new') ?? err.itemAt('current')) : undefined
      const wrong = isApiError(err, 'unauthenticated') || isApiError(err, 'permission_denied')
      setError(wrong ? t('password.wrong') : [errorText(err), item?.message].filter(Boolean).join(' '))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Gate title={t('password.title')}>
      {forced && <p className="muted">{t('password.firstHelp')}</p>}
      {error && <Alert type="error" showIcon title={error} role="alert" />}
      <Form layout="vertical" requiredMark={false} onFinish={submit}>
        <input type="text" name="username" autoComplete="username" value={username} readOnly hidden />
        <Form.Item name="current" label={t('password.current')} rules={[{ required: true, message: t('field.required') }]}>
          <Input.Password autoComplete="current-password" size="large" />
        </Form.Item>
        <Form.Item
          name="next"
          label={t('password.next')}
          extra={t('password.rule')}
          rules={[
            { required: true, min: MIN_LENGTH, message: t('password.short') },
            { validator: (_, value: string) => (value && value.toLowerCase() === username.toLowerCase() ? Promise.reject(new Error(t('password.isUser'))) : Promise.resolve()) },
          ]}
        >
          <Input.Password autoComplete="new-password" size="large" />
        </Form.Item>
        <Form.Item
          name="again"
          label={t('password.again')}
          dependencies={['next']}
          rules={[
            { required: true, message: t('field.required') },
            ({ getFieldValue }) => ({
              validator: (_, value: string) => (!value || value === getFieldValue('next') ? Promise.resolve() : Promise.reject(new Error(t('password.differ')))),
            }),
          ]}
        >
          <Input.Password autoComplete="new-password" size="large" />
        </Form.Item>
        <Button type="primary" htmlType="submit" size="large" block loading={busy}>
          {t('password.submit')}
        </Button>
      </Form>
      {!forced && <Link to="/overview">{t('action.back')}</Link>}
    </Gate>
  )
}
