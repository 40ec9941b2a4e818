// Renaming, disabling and deleting an executor; draining one of its instances.
import { Button, Checkbox, Form, Input } from 'antd'
import type { Rule } from 'antd/es/form'
import { useRef, useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { executorApi, refreshExecutors } from './executors'
import type { ExecutorDetail, Instance, RemovedInstance } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { RelativeTime } from '../../ui/TimeText'
import { useDanger } from '../../ui/useDanger'

/** What the server takes as a name of an executor. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

export function useNameRules(): Rule[] {
  const { t } = useTranslation()
  return [
    { required: true, whitespace: true, message: t('field.required') },
    { transform: (name: string) => name.trim(), pattern: NAME, message: t('executors.nameRule') },
  ]
}

export function ExecutorActions({ executor }: { executor: ExecutorDetail }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const showError = useShowError()
  const navigate = useNavigate()
  const [renaming, setRenaming] = useState(false)
  const note = useRef('')
  const along = useRef({ jobs: false, instances: false })
  const { name } = executor
  const disable = () => {
    note.current = ''
    danger({
      title: t('executors.disableTitle', { name }),
      content: (
        <div className="stack">
          <p>{t('executors.disableHelp')}</p>
          <Input aria-label={t('field.note')} placeholder={t('field.note')} maxLength={512} onChange={(event) => (note.current = event.target.value)} />
        </div>
      ),
      action: t('executors.disable'),
      work: () => executorApi.disable(executor, note.current.trim()),
      done: t('executors.disabled', { name }),
      after: refreshExecutors,
    })
  }
  const enable = async () => {
    try {
      await executorApi.enable(executor)
      message.success(t('executors.enabled', { name }))
    } catch (err) {
      showError(err)
    }
    refreshExecutors()
  }
  const remove = () => {
    along.current = { jobs: false, instances: false }
    danger({
      title: t('executors.deleteTitle', { name }),
      content: (
        <div className="stack">
          <p>{t('executors.deleteHelp')}</p>
          <Checkbox onChange={(event) => (along.current.jobs = event.target.checked)}>{t('executors.deleteJobs')}</Checkbox>
          <Checkbox onChange={(event) => (along.current.instances = event.target.checked)}>{t('executors.deleteInstances', { count: executor.instancesTotal })}</Checkbox>
        </div>
      ),
      action: t('action.delete'),
      work: async () => {
        await executorApi.remove(executor, along.current.jobs, along.current.instances)
        await navigate({ to: '/executors' })
      },
      done: t('executors.deleted', { name }),
      after: refreshExecutors,
    })
  }
  return (
    <>
      <ActionButton onClick={() => setRenaming(true)}>{t('executors.rename')}</ActionButton>
      {executor.state === 'disabled' ? <ActionButton onClick={() => void enable()}>{t('executors.enable')}</ActionButton> : <ActionButton onClick={disable}>{t('executors.disable')}</ActionButton>}
      <ActionButton danger onClick={remove}>
        {t('action.delete')}
      </ActionButton>
      {renaming && <RenameDialog executor={executor} onClose={() => setRenaming(false)} />}
    </>
  )
}

function RenameDialog({ executor, onClose }: { executor: ExecutorDetail; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const nameRules = useNameRules()
  const [form] = Form.useForm<{ name: string }>()
  const [busy, setBusy] = useState(false)
  const submit = async ({ name }: { name: string }) => {
    setBusy(true)
    try {
      await executorApi.rename(executor, name.trim())
      message.success(t('executors.renamed', { name: name.trim() }))
      refreshExecutors()
      onClose()
    } catch (err) {
      if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('executors.renameTitle', { name: executor.name })} okText={t('executors.rename')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ name: executor.name }} onFinish={(fields) => void submit(fields)}>
        <Form.Item name="name" label={t('field.name')} extra={t('executors.renameHelp')} validateTrigger="onSubmit" rules={nameRules}>
          <Input autoComplete="off" spellCheck={false} />
        </Form.Item>
      </Form>
    </Dialog>
  )
}

/** Names that it had: they lead to it until somebody says that nothing uses them. */
export function FormerNames({ executor, canEdit }: { executor: ExecutorDetail; canEdit: boolean }) {
  const { t } = useTranslation()
  const danger = useDanger()
  if (executor.formerNames.length === 0) return null
  const forget = (name: string) =>
    danger({ title: t('executors.forgetTitle', { name }), content: t('executors.forgetHelp'), action: t('executors.forget'), work: () => executorApi.forget(executor.id, name), done: t('executors.forgotten', { name }), after: refreshExecutors })
  return (
    <section className="card row" aria-label={t('executors.formerNames')}>
      <h2 className="no-margin">{t('executors.formerNames')}</h2>
      {executor.formerNames.map((name) => (
        <span key={name} className="row tight">
          <span className="mono">{name}</span>
          {canEdit && (
            <ActionButton size="small" onClick={() => forget(name)} aria-label={`${t('executors.forget')}: ${name}`}>
              {t('executors.forget')}
            </ActionButton>
          )}
        </span>
      ))}
    </section>
  )
}

export function DrainButton({ instance }: { instance: Instance }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const showError = useShowError()
  const { id, name } = instance
  const undrain = async () => {
    try {
      await executorApi.undrain(id)
      message.success(t('executors.undrained', { name }))
    } catch (err) {
      showError(err)
    }
    refreshExecutors()
  }
  const drain = () => danger({ title: t('executors.drainTitle', { name }), content: t('executors.drainHelp'), action: t('executors.drain'), work: () => executorApi.drain(id), done: t('executors.drained', { name }), after: refreshExecutors })
  const label = t(instance.drainedAt ? 'executors.undrain' : 'executors.drain')
  return (
    <ActionButton size="small" onClick={() => (instance.drainedAt ? void undrain() : drain())} aria-label={`${label}: ${name}`}>
      {label}
    </ActionButton>
  )
}

/** Takes an instance out with what it runs; onRemoved hears what becomes of that. */
export function RemoveButton({ instance, onRemoved }: { instance: Instance; onRemoved: (removed: RemovedInstance) => void }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const reason = useRef('')
  const { id, name, running } = instance
  const remove = () => {
    reason.current = ''
    danger({
      title: t('executors.removeTitle', { name }),
      content: (
        <div className="stack">
          <p>{t('executors.removeHelp')}</p>
          {running > 0 && <p className="st-timeout">{t('executors.removeRunning', { count: running })}</p>}
          <Input aria-label={t('field.reason')} placeholder={t('field.reason')} maxLength={1000} onChange={(event) => (reason.current = event.target.value)} />
        </div>
      ),
      action: t('executors.remove'),
      work: async () => onRemoved(await executorApi.removeInstance(id, reason.current.trim())),
      done: t('executors.removed', { name }),
      after: refreshExecutors,
    })
  }
  return (
    <ActionButton size="small" danger onClick={remove} aria-label={`${t('executors.remove')}: ${name}`}>
      {t('executors.remove')}
    </ActionButton>
  )
}

export function RemovedDialog({ removed, onClose }: { removed: RemovedInstance; onClose: () => void }) {
  const { t } = useTranslation()
  return (
    <Dialog title={t('executors.removed', { name: removed.instance.name })} footer={<Button onClick={onClose}>{t('action.close')}</Button>} onCancel={onClose}>
      <p>
        {t('executors.removedRuns')} <RelativeTime at={removed.leaseUntil} />
      </p>
      <ul className="plain-list">
        {removed.runs.map((one) => (
          <li key={one.id}>
            <Link to="/runs/$runId" params={{ runId: one.id }} onClick={onClose}>
              {one.jobName} <span className="mono small">{one.id}</span>
            </Link>{' '}
            {t(`executors.fate.${one.then}`)}
          </li>
        ))}
      </ul>
    </Dialog>
  )
}
