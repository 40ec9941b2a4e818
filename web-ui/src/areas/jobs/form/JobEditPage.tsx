// Creating and editing a job: one page, three sections, the next fires beside.
import { useQuery } from '../../../api/useQuery'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Button, Checkbox, Form } from 'antd'
import type { TFunction } from 'i18next'
import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api, type Lenient } from '../../../api/endpoints'
import { isApiError } from '../../../api/problem'
import { queries, queryClient, readOnce, refreshJobs } from '../../../api/queries'
import type { Job, JobWrite, ProblemItem } from '../../../api/types'
import { later } from '../../../ui/later'
import { EditPage, FormFoot } from '../../../ui/EditPage'
import { useShowError } from '../../../ui/hooks'
import { HowSection, WhatSection, WhenSection } from './JobFormFields'
import { writtenInput } from '../../../ui/input/JsonEditor'
import { message, modal } from '../../../ui/notices'
import { Page } from '../../../ui/Page'
import type { Refused } from '../../../ui/input/SchemaForm'
import { SchedulePreview } from '../SchedulePreview'
import { useLeaveGuard } from '../../../ui/useLeaveGuard'
import { useUnfit } from '../../runs/useUnfit'
import { defaultBlocking, fieldPath, fieldsOf, newJob, scheduleOf, writeOf, writeOfFields, type JobFields, type ScheduleFields } from './jobForm'

const ConflictDialog = later(() => import('./ConflictDialog'))

export function JobNewPage() {
  const { t } = useTranslation()
  const { executorId, handler } = useSearch({ from: '/app/jobs/new' })
  return (
    <Page title={t('jobs.form.createTitle')} crumbs={<Link to="/jobs">{t('jobs.list.title')}</Link>}>
      <JobForm initial={newJob(executorId, handler)} />
    </Page>
  )
}

/** Who decides about the job that is edited, if code declares it. */
function ownerHint({ declared, source }: Job, t: TFunction): string | undefined {
  if (!declared) return undefined
  if (declared.locked || declared.ownership === 'code') return t('jobs.detail.lockedHint')
  if (declared.ownership === 'until_edited' && source === 'console') return t('jobs.giveBack.notApplied')
  return t(`jobs.detail.editHint_${declared.ownership}`)
}

export function JobEditPage() {
  const { t } = useTranslation()
  const { jobId } = useParams({ from: '/app/jobs/$jobId/edit' })
  return (
    <EditPage
      stored={useQuery(readOnce(queries.job(jobId)))}
      title={({ name }) => t('jobs.form.editTitle', { name })}
      crumbs={({ name }) => (
        <>
          <Link to="/jobs">{t('jobs.list.title')}</Link> ›{' '}
          <Link to="/jobs/$jobId" params={{ jobId }}>
            {name}
          </Link>
        </>
      )}
      sub={(edited) => ownerHint(edited, t)}
    >
      {(job) => <JobForm key={job.revision} initial={writeOf(job)} stored={job} />}
    </EditPage>
  )
}

interface Conflict {
  mine: JobWrite
  current: Job
}

function JobForm({ initial, stored }: { initial: JobWrite; stored?: Job }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const showError = useShowError()
  const meant = useUnfit()
  const [form] = Form.useForm<JobFields>()
  const [initialFields] = useState(() => fieldsOf(initial))
  // What the draft stands on; moves when a conflict was settled.
  const [base, setBase] = useState({ write: initial, revision: stored?.revision ?? 0 })
  const [conflict, setConflict] = useState<Conflict>()
  const [refusedInput, setRefusedInput] = useState<Refused>()
  const [advancedOpen, setAdvancedOpen] = useState(false)
  const [busy, setBusy] = useState(false)
  const dirty = useRef(false)
  const schedule = Form.useWatch('schedule', form)

  useLeaveGuard(() => dirty.current)

  const save = async (allow: Lenient = {}) => {
    const fields = form.getFieldsValue(true) as JobFields
    const mine = writeOfFields(fields)
    const sent = { ...mine, input: writtenInput(fields.inputText) }
    setBusy(true)
    try {
      const job = stored
        ? await api.updateJob(stored.id, base.revision, sent, allow)
        : await api.createJob({ ...sent, state: fields.paused ? 'paused' : 'enabled' }, allow)
      dirty.current = false
      message.success(t('jobs.form.saved', { name: job.name }))
      queryClient.setQueryData(queries.job(job.id).queryKey, job)
      refreshJobs()
      await navigate({ to: '/jobs/$jobId', params: { jobId: job.id } })
    } catch (err) {
      await refused(err, mine, allow)
    } finally {
      setBusy(false)
    }
  }

  /** Asks before a schedule without any fire time is saved. A schedule with a fault is for the server to refuse. */
  const firesOrMeant = async (): Promise<boolean> => {
    const spec = scheduleOf(schedule)
    if (!spec || spec.kind === 'none' || stored?.neverFires) return true
    const preview = await api.previewSchedule(spec, 1).catch(() => undefined)
    if (!preview?.neverFires) return true
    return modal.confirm({
      title: t('jobs.form.neverTitle'),
      content: t('jobs.form.neverHelp'),
      okText: t('jobs.form.saveAnyway'),
      cancelText: t('action.back'),
      autoFocusButton: 'cancel',
    })
  }

  const finish = async () => {
    setBusy(true)
    const meantSo = await firesOrMeant()
    setBusy(false)
    if (meantSo) await save()
  }

  const refused = async (err: unknown, mine: JobWrite, allow: Lenient) => {
    if (stored && isApiError(err) && (err.code === 'revision_mismatch' || err.status === 412)) {
      const current = err.current ?? (await api.job(stored.id).catch(() => undefined))
      if (current) return setConflict({ mine, current })
    }
    if (isApiError(err, 'unknown_handler')) {
      const anyway = await modal.confirm({
        title: t('jobs.form.unknownTitle'),
        content: t('jobs.form.unknownHelp', { name: mine.handler }),
        okText: t('jobs.form.saveAnyway'),
        cancelText: t('action.back'),
        autoFocusButton: 'cancel',
      })
      return anyway ? save({ ...allow, allowUnknownHandler: true }) : form.scrollToField('handler', { focus: true })
    }
    if (isApiError(err, 'unfit_input')) {
      setRefusedInput({ value: mine.input, items: err.items })
      return (await meant(mine.handler, err.items, t('jobs.form.saveAnyway'))) ? save({ ...allow, allowUnfitInput: true }) : undefined
    }
    const all = isApiError(err) ? err.items : []
    const isInput = (item: ProblemItem) => fieldPath(item)?.[0] === 'inputText'
    const ofInput = all.filter(isInput)
    if (ofInput.length > 0) setRefusedInput({ value: mine.input, items: ofInput })
    const items = all.filter((item) => !isInput(item))
    const fields = items.flatMap((item) => {
      const name = fieldPath(item)
      const known = name && form.getFieldInstance(name as never) !== undefined
      return known ? [{ name: name as never, errors: [[item.message, item.hint].filter(Boolean).join(' ')] }] : []
    })
    form.setFields(fields)
    if (fields[0]) form.scrollToField(fields[0].name, { focus: true })
    if (all.length === 0 || fields.length < items.length) showError(err)
  }

  const applyConflict = (merged: JobWrite, current: Job) => {
    form.setFieldsValue(fieldsOf(merged))
    setBase({ write: writeOf(current), revision: current.revision })
    setConflict(undefined)
    message.info(t('jobs.conflict.rebased', { n: current.revision }))
  }
  return (
    <Form
      form={form}
      layout="vertical"
      initialValues={initialFields}
      scrollToFirstError={{ focus: true }}
      onValuesChange={(changed: { schedule?: Partial<ScheduleFields> }) => {
        dirty.current = true
        const kind = changed.schedule?.kind
        if (kind && !stored && !form.isFieldTouched('blocking')) form.setFields([{ name: 'blocking', value: defaultBlocking(kind), touched: false }])
      }}
      onFinish={() => void finish()}
      onFinishFailed={() => setAdvancedOpen(true)}
    >
      <div className="form-grid">
        <div className="stack">
          <WhatSection refused={refusedInput} />
          <WhenSection />
          <HowSection advancedOpen={advancedOpen} onAdvanced={setAdvancedOpen} secretSet={stored?.alert.webhookSecretSet ?? false} />
        </div>
        <aside className="form-rail" aria-label={t('jobs.preview.title')}>
          <section className="card">
            <h2>{t('jobs.preview.title')}</h2>
            <SchedulePreview spec={scheduleOf(schedule)} />
          </section>
        </aside>
      </div>
      <FormFoot
        isNew={!stored}
        busy={busy}
        cancel={<Button onClick={() => void navigate(stored ? { to: '/jobs/$jobId', params: { jobId: stored.id } } : { to: '/jobs' })}>{t('action.cancel')}</Button>}
      >
        {!stored && (
          <Form.Item name="paused" valuePropName="checked" noStyle>
            <Checkbox>{t('jobs.form.startPaused')}</Checkbox>
          </Form.Item>
        )}
      </FormFoot>
      {conflict && (
        <ConflictDialog
          base={base.write}
          mine={conflict.mine}
          current={conflict.current}
          onApply={(merged) => applyConflict(merged, conflict.current)}
          onCancel={() => setConflict(undefined)}
        />
      )}
    </Form>
  )
}
