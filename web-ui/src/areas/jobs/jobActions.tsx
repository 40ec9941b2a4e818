// What can be done to a job from a list or its page: run, pause, resume,
// edit, delete; each with its question, its answer and a refresh.
import {
  CaretRightOutlined,
  DeleteOutlined,
  EditOutlined,
  EllipsisOutlined,
  PauseOutlined,
  PlayCircleOutlined,
} from '@ant-design/icons'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../api/endpoints'
import { queryClient, refreshJobs } from '../../api/queries'
import type { Job } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { useCan, useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { later } from '../../ui/later'
import { MenuButton } from '../../ui/MenuButton'
import { TextField } from '../../ui/TextField'
import { useConfirm } from '../../ui/useConfirm'

const RunNowDialog = later(() => import('./RunNowDialog'))

function useJobActions(job: Job, onDeleted?: () => void) {
  const { t } = useTranslation()
  const confirm = useConfirm()
  const showError = useShowError()

  const act = async (work: () => Promise<unknown>, done: string) => {
    try {
      await work()
      message.success(done)
      refreshJobs()
    } catch (err) {
      showError(err)
      throw err
    }
  }
  const pause = () => {
    let note = ''
    confirm({
      title: t('jobs.action.pauseTitle', { name: job.name }),
      content: (
        <div className="stack">
          <p>{t('jobs.action.pauseHelp')}</p>
          <TextField label={t('jobs.action.pauseNote')} maxLength={500} onChange={(text) => (note = text)} />
        </div>
      ),
      okText: t('jobs.action.pause'),
      cancelText: t('action.cancel'),
      onOk: () => act(() => api.pauseJob(job.id, note.trim()), t('jobs.action.paused', { name: job.name })).catch(() => {}),
    })
  }
  const resume = () => act(() => api.resumeJob(job.id), t('jobs.action.resumed', { name: job.name })).catch(() => {})
  const remove = () =>
    confirm({
      title: t('jobs.action.deleteTitle', { name: job.name }),
      content: (
        <>
          <p>{t('jobs.action.deleteHelp')}</p>
          {job.declared && <p>{t('jobs.action.deleteDeclaredHelp')}</p>}
        </>
      ),
      okText: t('action.delete'),
      okButtonProps: { danger: true },
      cancelText: t('action.cancel'),
      onOk: () =>
        act(async () => {
          await api.deleteJob(job.id)
          queryClient.removeQueries({ queryKey: ['job', job.id] })
          onDeleted?.()
        }, t('jobs.action.deleted', { name: job.name })).catch(() => {}),
    })
  return { pause, resume, remove }
}

/** Run, pause or resume, and "…" with the rest; a row of a list has the pause in "…" too. Hidden where the role forbids. */
export function JobActions({ job, compact, onDeleted }: { job: Job; compact?: boolean; onDeleted?: () => void }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const canRun = useCan('operator')
  const canEdit = useCan('editor')
  const [running, setRunning] = useState(false)
  const { pause, resume, remove } = useJobActions(job, onDeleted)
  if (!canRun) return null
  const paused = job.state === 'paused'
  const toggle = paused ? resume : pause
  const toggleText = t(paused ? 'jobs.action.resume' : 'jobs.action.pause')
  const toggleIcon = paused ? <PlayCircleOutlined /> : <PauseOutlined />
  const items = [
    ...(compact ? [{ key: 'toggle', icon: toggleIcon, label: toggleText }] : []),
    ...(canEdit
      ? [
          { key: 'edit', icon: <EditOutlined />, label: t('jobs.action.edit') },
          { key: 'delete', icon: <DeleteOutlined />, label: t('jobs.action.delete'), danger: true },
        ]
      : []),
  ]
  const choose = (key: string) => {
    if (key === 'edit') void navigate({ to: '/jobs/$jobId/edit', params: { jobId: job.id } })
    else if (key === 'delete') remove()
    else void toggle()
  }
  return (
    <span className="row tight no-wrap">
      <ActionButton
        size={compact ? 'small' : 'middle'}
        type={compact ? 'default' : 'primary'}
        icon={<CaretRightOutlined />}
        onClick={() => setRunning(true)}
        title={compact ? t('jobs.action.run') : undefined}
        aria-label={compact ? `${t('jobs.action.run')}: ${job.name}` : undefined}
      >
        {compact ? null : t('jobs.action.run')}
      </ActionButton>
      {!compact && (
        <ActionButton icon={toggleIcon} onClick={toggle}>
          {toggleText}
        </ActionButton>
      )}
      {items.length > 0 && (
        <MenuButton
          button={{ type: 'default', size: compact ? 'small' : 'middle', icon: <EllipsisOutlined />, 'aria-label': t('action.more', { name: job.name }) }}
          menu={{ items, onClick: ({ key }) => choose(key) }}
        />
      )}
      {running && <RunNowDialog job={job} onClose={() => setRunning(false)} />}
    </span>
  )
}
