import { useNavigate, useRouter, useSearch } from '@tanstack/react-router'
import { Alert, Button, Form, Input } from 'antd'
import { useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../api/endpoints'
import { isApiError } from '../api/problem'
import { queryClient } from '../api/queries'
import { Bell } from '../components/Bell'
import { useDocumentTitle, useErrorText } from '../components/hooks'
import { LanguageMenu, ThemeMenu } from '../components/Preferences'

/** The frame of the pages before and beside the shell. */
export function Gate({ title, children }: { title: string; children: ReactNode }) {
  const { t } = useTranslation()
  useDocumentTitle(title)
  return (
    <main className="gate">
      <div className="gate-card stack">
        <div className="row between">
          <span className="row">
            <Bell size={34} />
            <span>
              <strong style={{ fontSize: 16 }}>{t('app.name')}</strong>
              <br />
              <span className="muted small">{t('app.tagline')}</span>
            </span>
          </span>
          <span className="row tight">
            <LanguageMenu />
            <ThemeMenu />
          </span>
        </div>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  )
}

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

  const submit = async (fields: Fields) => {
    setBusy(true)
    setError('')
    try {
      const login = await api.login(fields.username.trim(), fields.password, fields.tenant?.trim())
      queryClient.clear()
      if (login.user.mustChangePassword) await navigate({ to: '/password', search: { next } })
      else router.history.push(next ?? '/overview')
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
        <Form.Item name="username" label={t('login.username')} rules={[{ required: true, whitespace: true, message: t('field.required') }]}>
          <Input autoComplete="username" autoCapitalize="none" spellCheck={false} size="large" />
        </Form.Item>
        <Form.Item name="password" label={t('login.password')} rules={[{ required: true, message: t('field.required') }]}>
          <Input.Password autoComplete="current-password" size="large" />
        </Form.Item>
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
        <Button type="link" style={{ padding: 0, justifySelf: 'start' }} onClick={() => setAskTenant(true)}>
          {t('login.otherTenant')}
        </Button>
      )}
      <p className="muted small">{t('login.firstHelp')}</p>
    </Gate>
  )
}
