import { useNavigate, useRouter, useSearch } from '@tanstack/react-router'
import { Alert, Button, Form, Input } from 'antd'
import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../api/endpoints'
import { isApiError } from '../../api/problem'
import { queryClient } from '../../api/queries'
import { Gate } from './Gate'
import { useErrorText } from '../../ui/hooks'
import { basePath } from '../../lib/base'

interface Fields {
  username: string
  password: string
  tenant?: string
}

export function LoginPage() {
  const { t } = useTranslation()
  const { next } = useSearch({ from: '/login' })
  const navigate = useNavigate()
  const router = useRouter()
  const errorText = useErrorText()
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const [askTenant, setAskTenant] = useState(false)

  const fields = useRef<HTMLDivElement>(null)
  // A browser may have filled in the name, or both.
  useEffect(() => {
    const inputs = [...(fields.current?.querySelectorAll('input') ?? [])]
    ;(inputs.find((one) => !one.value) ?? inputs[0])?.focus()
  }, [])

  const submit = async (given: Fields) => {
    setBusy(true)
    setError('')
    try {
      const login = await api.login(given.username.trim(), given.password, given.tenant?.trim())
      queryClient.clear()
      if (login.user.mustChangePassword) await navigate({ to: '/password', search: { next } })
      else router.history.push(basePath + (next ?? '/overview'))
    } catch (err) {
      setError(isApiError(err, 'unauthenticated') ? t('login.wrong') : errorText(err))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Gate title={t('login.title')}>
      {error && <Alert type="error" showIcon title={error} role="alert" />}
      <Form layout="vertical" requiredMark={false} onFinish={submit}>
        <div ref={fields}>
          <Form.Item name="username" label={t('login.username')} rules={[{ required: true, whitespace: true, message: t('field.required') }]}>
            <Input autoComplete="username" autoCapitalize="none" spellCheck={false} size="large" />
          </Form.Item>
          <Form.Item name="password" label={t('login.password')} rules={[{ required: true, message: t('field.required') }]}>
            <Input.Password autoComplete="current-password" size="large" />
          </Form.Item>
        </div>
        {askTenant && (
          <Form.Item name="tenant" label={t('login.tenant')} extra={t('login.tenantHelp')}>
            <Input autoCapitalize="none" spellCheck={false} size="large" />
          </Form.Item>
        )}
        <Button type="primary" htmlType="submit" size="large" block loading={busy}>
          {t('login.submit')}
        </Button>
      </Form>
      {!askTenant && (
        <Button type="link" className="no-padding self-start" onClick={() => setAskTenant(true)}>
          {t('login.otherTenant')}
        </Button>
      )}
      <p className="muted small">{t('login.firstHelp')}</p>
    </Gate>
  )
}
