// What agents may do for the tenant: everybody sees it, platform
// administrators change it.
import { useQuery } from '../../api/useQuery'
import { Checkbox, Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { refreshScripts, scriptApi, scriptQueries } from './scripts'
import type { ScriptLanguage, ScriptPolicy } from '../../api/types'
import { languageOptions, SCRIPT_LANGUAGES } from './scriptWords'
import { ActionButton } from '../../ui/ActionButton'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useSession, useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { ErrorState } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'

export function ScriptPolicyCard() {
  const { t } = useTranslation()
  const policy = useQuery(scriptQueries.scriptPolicy())
  const platform = useSession()?.user.platformAdmin ?? false
  const [editing, setEditing] = useState(false)
  if (policy.error && !policy.data) return <ErrorState error={policy.error} onRetry={() => void policy.refetch()} />
  const { data } = policy
  const on = data ? [...data.languages.map((one) => SCRIPT_LANGUAGES[one]), ...(data.http ? [t('scripts.policyHTTP')] : [])] : []
  return (
    <section className="card" aria-label={t('scripts.policy')}>
      <div className="card-head">
        <h2>{t('scripts.policy')}</h2>
        {platform && data && <ActionButton onClick={() => setEditing(true)}>{t('scripts.policyChange')}</ActionButton>}
      </div>
      {data ? (
        <>
          <p>
            <strong>{on.length > 0 ? on.join(', ') : t('scripts.policyOff')}</strong>{' '}
            <span className="muted">
              {data.createdAt ? (
                <>
                  {t('scripts.policyBy', { who: data.createdBy })} · <RelativeTime at={data.createdAt} /> {data.note && `· ${data.note}`}
                </>
              ) : (
                t('scripts.policyNever')
              )}
            </span>
          </p>
          <p className="muted small">
            {t('scripts.policyHelp')} {!platform && t('scripts.policyAsk')}
          </p>
        </>
      ) : (
        <span className="skeleton" />
      )}
      {editing && data && <PolicyDialog policy={data} onClose={() => setEditing(false)} />}
    </section>
  )
}

interface Fields {
  languages: ScriptLanguage[]
  http: boolean
  note: string
}

function PolicyDialog({ policy, onClose }: { policy: ScriptPolicy; onClose: () => void }) {
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
