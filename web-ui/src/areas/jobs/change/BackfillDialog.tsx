// Asking for a backfill: a range on the clocks of the job's zone, and at once
// what it would do. The server counts; nothing is written before the button.
import { keepPreviousData } from '@tanstack/react-query'
import { useQuery } from '../../../api/useQuery'
import { Form, Input, InputNumber, Radio } from 'antd'
import type { Dayjs } from 'dayjs'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { backfillApi } from './backfills'
import { isApiError } from '../../../api/problem'
import { queryClient, refreshJobs } from '../../../api/queries'
import type { Backfill, BackfillRequest, BackfillScope, Job } from '../../../api/types'
import { wallToInstant } from '../../../lib/time'
import { Dialog } from '../../../ui/Dialog'
import { FireList } from '../FireList'
import { useDebounced, useErrorText, useShowError } from '../../../ui/hooks'
import { message } from '../../../ui/notices'
import WallPicker from '../../../ui/WallPicker'

const TYPING_MS = 250
const SHOWN_FIRES = 8

export default function BackfillDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const { zone } = job.schedule
  const [from, setFrom] = useState<Dayjs | null>(null)
  const [to, setTo] = useState<Dayjs | null>(null)
  const [scope, setScope] = useState<BackfillScope>('missing')
  const [concurrency, setConcurrency] = useState(1)
  const [note, setNote] = useState('')
  const [busy, setBusy] = useState(false)

  const instant = (wall: Dayjs) => wallToInstant(wall.format('YYYY-MM-DDTHH:mm:ss'), zone)
  const asked: BackfillRequest | undefined = from && to ? { from: instant(from), to: instant(to), scope, concurrency } : undefined
  const preview = usePreview(job.id, asked)
  const count = preview.data && !preview.isPlaceholderData ? preview.data.created : 0

  const submit = async () => {
    if (!asked) return
    setBusy(true)
    try {
      await backfillApi.backfillJob(job.id, { ...asked, note: note.trim() || undefined })
      message.success(t('backfill.started'))
      void queryClient.invalidateQueries({ queryKey: ['job', job.id, 'backfills'] })
      refreshJobs()
      onClose()
    } catch (err) {
      showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog
      width={640}
      title={t('backfill.createTitle', { name: job.name })}
      okText={count > 0 ? t('backfill.submit', { count }) : t('backfill.submitNone')}
      cancelText={t('action.cancel')}
      okButtonProps={{ disabled: count === 0, loading: busy }}
      onOk={() => void submit()}
      onCancel={onClose}
    >
      <Form layout="vertical" component="div">
        <div className="form-fields">
          <Form.Item label={t('backfill.from')} htmlFor="backfill-from">
            <WallPicker id="backfill-from" value={from} onChange={setFrom} />
          </Form.Item>
          <Form.Item label={t('backfill.to')} htmlFor="backfill-to" extra={t('backfill.toHelp', { zone })}>
            <WallPicker id="backfill-to" value={to} onChange={setTo} />
          </Form.Item>
        </div>
        <Form.Item label={t('backfill.scope')}>
          <Radio.Group
            aria-label={t('backfill.scope')}
            value={scope}
            onChange={(event) => setScope(event.target.value as BackfillScope)}
            options={(['missing', 'unsuccessful', 'all'] as const).map((value) => ({ value, label: t(`backfill.scope_${value}`) }))}
          />
        </Form.Item>
        <div className="form-fields">
          <Form.Item label={t('backfill.concurrency')} htmlFor="backfill-concurrency">
            <InputNumber id="backfill-concurrency" min={1} max={100} precision={0} value={concurrency} onChange={(value) => setConcurrency(value ?? 1)} className="full" />
          </Form.Item>
          <Form.Item label={t('backfill.note')} htmlFor="backfill-note">
            <Input id="backfill-note" value={note} maxLength={500} onChange={(event) => setNote(event.target.value)} />
          </Form.Item>
        </div>
      </Form>
      <h3>{t('backfill.preview')}</h3>
      <div aria-live="polite">
        <PreviewText asked={asked !== undefined} data={preview.data} error={preview.error} zone={zone} />
      </div>
    </Dialog>
  )
}

function usePreview(jobId: string, asked: BackfillRequest | undefined) {
  const settled = useDebounced(JSON.stringify(asked ?? null), TYPING_MS)
  return useQuery({
    queryKey: ['job', jobId, 'backfill-preview', settled],
    queryFn: ({ signal }) => backfillApi.backfillJob(jobId, { ...(JSON.parse(settled) as BackfillRequest), dryRun: true }, signal),
    enabled: settled !== 'null' && settled === JSON.stringify(asked),
    placeholderData: keepPreviousData,
    retry: false,
  })
}

function PreviewText({ asked, data, error, zone }: { asked: boolean; data: Backfill | undefined; error: unknown; zone: string }) {
  const { t } = useTranslation()
  const errorText = useErrorText()
  if (!asked) return <p className="muted">{t('backfill.previewWait')}</p>
  if (error) {
    const items = isApiError(error) ? error.items.map((item) => item.message).join(' · ') : ''
    return (
      <p className="st-failed">
        ✕ {errorText(error)} {items}
      </p>
    )
  }
  if (!data) return <span className="skeleton" />
  const shown = (data.fires ?? []).slice(0, SHOWN_FIRES)
  return (
    <>
      <p className="below-2">
        <strong>{data.created > 0 ? t('backfill.would', { count: data.created }) : t('backfill.nothing')}</strong>{' '}
        <span className="muted">
          · {t('backfill.planned', { count: data.planned })} · {t('backfill.skipped', { count: data.skipped })}
        </span>
      </p>
      {shown.length > 0 && <FireList fires={shown} neverFires={false} zone={zone} />}
      {data.created > shown.length && <p className="muted">{t('backfill.more', { count: data.created - shown.length })}</p>}
    </>
  )
}
