// Renaming, disabling and deleting an executor; draining one of its instances.
import { useRef, useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { executorApi, refreshExecutors } from './executors'
import type { ExecutorDetail, Instance, RemovedInstance } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { Check } from '../../ui/Check'
import { TextField } from '../../ui/TextField'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { useDanger } from '../../ui/useDanger'
import { later } from '../../ui/later'

const RenameDialog = later(() => import('./RenameDialog'))

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
          <TextField label={t('field.note')} maxLength={512} onChange={(text) => (note.current = text)} />
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
          <Check onChange={(on) => (along.current.jobs = on)}>{t('executors.deleteJobs')}</Check>
          <Check onChange={(on) => (along.current.instances = on)}>{t('executors.deleteInstances', { count: executor.instancesTotal })}</Check>
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
          <TextField label={t('field.reason')} maxLength={1000} onChange={(text) => (reason.current = text)} />
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
