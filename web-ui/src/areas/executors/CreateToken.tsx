import { useQuery } from '../../api/useQuery'
import { Alert, Button, Checkbox, Form, Input, InputNumber, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { joiningApi } from './joining'
import { queries } from '../../api/queries'
import type { ExecutorDetail } from '../../api/types'
import { environmentSnippet, executorAddress, goSnippet } from './snippet'
import { complainAt } from '../../ui/complain'
import { CopyBlock } from '../../ui/CopyButton'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { expiryIn, useExpiryOptions } from './expiry'

interface Fields {
  name?: string
  days: number
  maxUses?: number | null
  declareJobs: boolean
}

export default function CreateToken({ executor, onClose }: { executor: ExecutorDetail; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const expiry = useExpiryOptions()
  const [form] = Form.useForm<Fields>()
  const [secret, setSecret] = useState<string>()
  const { data: version } = useQuery(queries.version())
  const [before] = useState(executor.instancesOnline)
  const [busy, setBusy] = useState(false)
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      const token = await joiningApi.createJoinToken(executor.id, {
        name: fields.name?.trim() || undefined,
        expiresAt: expiryIn(fields.days),
        maxUses: fields.maxUses ?? undefined,
        declareJobs: fields.declareJobs,
      })
      setSecret(token.secret)
    } catch (err) {
      if (!complainAt(form, err, ([first = '']) => [first === 'expiresAt' ? 'days' : first])) showError(err)
    } finally {
      setBusy(false)
    }
  }
  if (secret) {
    return (
      <Dialog width={720} title={t('tokens.secretTitle')} onCancel={onClose} footer={<Button onClick={onClose}>{t('action.close')}</Button>}>
        <div className="stack">
          <Alert type="warning" showIcon title={t('tokens.secretHelp')} />
          <CopyBlock text={environmentSnippet(secret)} label={t('tokens.title')} />
          <h3>{t('tokens.snippet')}</h3>
          <p className="muted">{t('tokens.snippetHelp')}</p>
          <CopyBlock text={goSnippet(executor.name, executorAddress(version?.executorAddresses[0], location.hostname))} label={t('tokens.snippet')} />
          <Arrival executorId={executor.id} before={before} />
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title={t('tokens.create')} okText={t('action.create')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ days: 365, declareJobs: true }} onFinish={submit}>
        <Form.Item name="name" label={t('tokens.name')}>
          <Input maxLength={64} autoComplete="off" />
        </Form.Item>
        <Form.Item name="days" label={t('tokens.expiresIn')}>
          <Select options={expiry} />
        </Form.Item>
        <Form.Item name="maxUses" label={t('tokens.maxUses')} extra={t('tokens.maxUsesHelp')}>
          <InputNumber min={1} precision={0} className="full" />
        </Form.Item>
        <Form.Item name="declareJobs" valuePropName="checked" extra={t('tokens.declareJobsHelp')}>
          <Checkbox>{t('tokens.declareJobs')}</Checkbox>
        </Form.Item>
      </Form>
    </Dialog>
  )
}

/** Ticks itself when an instance arrives that was not there when the token was made. */
function Arrival({ executorId, before }: { executorId: string; before: number }) {
  const { t } = useTranslation()
  const online = useQuery({ ...queries.executor(executorId), refetchInterval: 2_000 }).data?.instancesOnline ?? 0
  return (
    <p role="status" className={online > before ? 'st-success' : 'muted'}>
      {online > before ? `✓ ${t('tokens.arrived', { count: online })}` : `… ${t('tokens.waiting')}`}
    </p>
  )
}
