// Run now: with the job's input or another one, on any instance or a chosen
// one. The idempotency key is made once per opening, so a double click or a
// resent request creates one run.
import { useQuery } from '../../api/useQuery'
import { useNavigate } from '@tanstack/react-router'
import { Alert, Checkbox, Form, Input, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../api/endpoints'
import { isApiError } from '../../api/problem'
import { queries, refreshJobs } from '../../api/queries'
import type { Job } from '../../api/types'
import { wireDuration } from '../../lib/duration'
import { randomKey } from '../../lib/misc'
import { loadFlag, saveFlag } from '../../lib/prefs'
import { useClearable } from '../../ui/clearable'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { InputEditor, useHandler } from '../../ui/input/InputEditor'
import { inputText, parseInput, writtenInput } from '../../ui/input/JsonEditor'
import { notification } from '../../ui/notices'
import type { Refused } from '../../ui/input/SchemaForm'
import { useUnfit } from '../runs/useUnfit'

export default function RunNowDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const { t } = useTranslation()
  const clearable = useClearable()
  const showError = useShowError()
  const meant = useUnfit()
  const navigate = useNavigate()
  const [key] = useState(randomKey)
  const [edited, setEdited] = useState<string>()
  const [instanceId, setInstanceId] = useState<string>()
  const [note, setNote] = useState('')
  const [follow, setFollow] = useState(() => loadFlag('follow', true))
  const [busy, setBusy] = useState(false)
  // Lists come without input, so the job is asked for in full.
  const full = useQuery(queries.job(job.id))
  const instances = useQuery(queries.instances(job.executor.id, {}))
  const handler = useHandler(job.executor.id, job.handler)
  const [refused, setRefused] = useState<Refused>()
  const online = (instances.data?.items ?? []).filter((one) => one.state === 'online')
  const text = edited ?? inputText(full.data?.input)
  const parsed = parseInput(text)

  const open = (runId: string) => navigate({ to: '/runs/$runId', params: { runId } })
  const submit = async (allowUnfit?: true): Promise<void> => {
    if (!parsed.ok) return
    setBusy(true)
    saveFlag('follow', follow)
    try {
      // An untouched input is left out: the server takes the job's own.
      const body = { ...(edited === undefined ? {} : { input: writtenInput(text) }), instanceId, note: note.trim() || undefined }
      const run = await api.runJob(job.id, body, key, allowUnfit)
      refreshJobs()
      onClose()
      if (follow) await open(run.id)
      else
        notification.success({
          title: t('jobs.run.started', { id: run.id }),
          actions: <a href={`/runs/${run.id}`} onClick={(event) => { event.preventDefault(); void open(run.id) }}>{t('jobs.run.open')}</a>,
        })
    } catch (err) {
      setBusy(false)
      if (!isApiError(err, 'unfit_input')) return showError(err)
      setRefused({ value: parsed.value, items: err.items })
      if (await meant(job.handler, err.items, t('jobs.run.anyway'))) await submit(true)
    }
  }
  return (
    <Dialog
      title={t('jobs.run.title', { name: job.name })}
      okText={t('jobs.run.submit')}
      cancelText={t('action.cancel')}
      okButtonProps={{ disabled: !parsed.ok, loading: busy }}
      onOk={() => void submit()}
      onCancel={onClose}
    >
      <Form layout="vertical" component="div">
        {instances.isSuccess && online.length === 0 && (
          <Alert type="warning" showIcon className="below-3" title={t('jobs.run.offline', { timeout: wireDuration(job.dispatchTimeout, t) })} />
        )}
        <InputEditor id="run-input" label={t('jobs.run.input')} schema={handler?.inputSchema} value={text} onChange={setEdited} refused={refused} />
        <Form.Item label={t('jobs.run.instance')} htmlFor="run-instance">
          <Select
            id="run-instance"
            allowClear={clearable}
            placeholder={t('jobs.run.instanceAny')}
            value={instanceId}
            onChange={setInstanceId}
            options={online.map((one) => ({ value: one.id, label: `${one.name} (${one.running}/${one.slots})` }))}
          />
        </Form.Item>
        <Form.Item label={t('jobs.run.note')} htmlFor="run-note">
          <Input id="run-note" value={note} maxLength={500} onChange={(event) => setNote(event.target.value)} />
        </Form.Item>
        <Checkbox checked={follow} onChange={(event) => setFollow(event.target.checked)}>
          {t('jobs.run.follow')}
        </Checkbox>
      </Form>
    </Dialog>
  )
}
