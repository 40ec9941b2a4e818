// How many runs of an executor, or of the tenant, go on at once: how full it
// is, and setting it.
import './executors.css'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Limit } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { StateIcon } from '../../ui/StateIcon'
import { Meter } from '../../ui/Meter'
import { later } from '../../ui/later'

const LimitDialog = later(() => import('./LimitDialog'))

/** What is limited, and to how many; 0 = no limit. */
export type Limited = Pick<Limit, 'kind' | 'subject' | 'maxRunning'>

export function LimitButton({ limited }: { limited: Limited }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  return (
    <>
      <ActionButton size="small" onClick={() => setOpen(true)}>
        {t(limited.maxRunning > 0 ? 'action.edit' : 'limits.set')}
        <span className="sr-only">: {limited.subject.name}</span>
      </ActionButton>
      {open && <LimitDialog limited={limited} onClose={() => setOpen(false)} />}
    </>
  )
}

/** How full it is; runs are counted under a limit only. */
export function Running({ row }: { row: Pick<Limit, 'maxRunning' | 'running'> }) {
  const { t } = useTranslation()
  if (row.maxRunning === 0) return <span className="muted small">{t('limits.unknown')}</span>
  const share = Math.min(100, (row.running / row.maxRunning) * 100)
  return (
    <span className="row tight no-wrap">
      <Meter share={share} />
      <span className="num nowrap">
        {row.running}/{row.maxRunning}
      </span>
      {row.running >= row.maxRunning && <span className="state st-timeout small"><StateIcon name="stop" /> {t('limits.full')}</span>}
    </span>
  )
}

export function Waiting({ row }: { row: Pick<Limit, 'maxRunning' | 'waiting'> }) {
  const { t } = useTranslation()
  if (row.maxRunning === 0) return <span className="muted">—</span>
  return row.waiting > 0 ? (
    <span className="st-queued num">
      … {row.waiting} {t('limits.waitingSome')}
    </span>
  ) : (
    <span className="num">0</span>
  )
}
