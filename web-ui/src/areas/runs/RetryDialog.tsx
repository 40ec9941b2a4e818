// Running an ended run again, with its input or another one.
import { useNavigate } from '@tanstack/react-router'
import { Form } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../api/endpoints'
import { isApiError } from '../../api/problem'
import { refreshJobs } from '../../api/queries'
import type { RunDetail } from '../../api/types'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { InputEditor, useHandler } from '../../ui/input/InputEditor'
import { inputText, parseInput, writtenInput } from '../../ui/input/JsonEditor'
import { message } from '../../ui/notices'
import type { Refused } from '../../ui/input/SchemaForm'
import { useUnfit } from './useUnfit'

export default function RetryDialog({ run, onClose }: { run: RunDetail; onClose: () => void }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const showError = useShowError()
  const meant = useUnfit()
  const handler = useHandler(run.executor.id, run.handler)
  const original = inputText(run.input)
  const [text, setText] = useState(original)
  const [busy, setBusy] = useState(false)
  const [refused, setRefused] = useState<Refused>()
  const parsed = parseInput(text)
  const submit = async (allowUnfit?: true): Promise<void> => {
    if (!parsed.ok) return
    setBusy(true)
    try {
      const next = await api.retryRun(run.id, text === original ? {} : { input: writtenInput(text) }, allowUnfit)
      message.success(t('runs.detail.retried', { id: next.id }))
      refreshJobs()
      onClose()
      await navigate({ to: '/runs/$runId', params: { runId: next.id } })
    } catch (err) {
      setBusy(false)
      if (!isApiError(err, 'unfit_input')) return showError(err)
      setRefused({ value: parsed.value, items: err.items })
      if (await meant(run.handler, err.items, t('jobs.run.anyway'))) await submit(true)
    }
  }
  return (
    <Dialog
      title={t('runs.detail.retryTitle')}
      okText={t('runs.detail.retry')}
      cancelText={t('action.cancel')}
      okButtonProps={{ disabled: !parsed.ok, loading: busy }}
      onOk={() => void submit()}
      onCancel={onClose}
    >
      <Form layout="vertical" component="div">
        <InputEditor id="retry-input" label={t('jobs.run.input')} schema={handler?.inputSchema} value={text} onChange={setText} refused={refused} />
      </Form>
    </Dialog>
  )
}
