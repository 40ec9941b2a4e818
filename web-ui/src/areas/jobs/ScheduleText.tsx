import { useTranslation } from 'react-i18next'
import type { Schedule } from '../../api/types'
import { wireDuration } from '../../lib/duration'
import { formatInstant } from '../../lib/time'
import { useLang } from '../../ui/hooks'

/** A schedule in one cell: the expression, and the sentence below unless it stands elsewhere; its zone once. */
export function ScheduleText({ schedule, brief = false }: { schedule: Schedule; brief?: boolean }) {
  const { t } = useTranslation()
  const lang = useLang()
  if (schedule.kind === 'none') return <span className="muted">{t('jobs.list.noSchedule')}</span>
  const short = {
    cron: schedule.expr,
    fixed_rate: `${t('jobs.form.every')} ${wireDuration(schedule.every, t)}`,
    fixed_delay: `${t('jobs.form.every')} ${wireDuration(schedule.every, t)}`,
    once: schedule.at ? formatInstant(schedule.at, schedule.zone) : '—',
    instants: `${schedule.instants?.length ?? 0} ×`,
    daily_window: `${schedule.windowFrom ?? ''}–${schedule.windowTo ?? ''}`,
  }[schedule.kind]
  const sentence = schedule.kind === 'cron' && !brief ? schedule.text?.[lang] : undefined
  return (
    <div className="w-300-most">
      <span className={schedule.kind === 'fixed_rate' ? '' : 'mono'}>{short}</span>{' '}
      {schedule.kind !== 'fixed_rate' && !sentence?.includes(schedule.zone) && <span className="muted small">{schedule.zone}</span>}
      {sentence && <div className="muted small">{sentence}</div>}
    </div>
  )
}
