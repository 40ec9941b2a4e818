// What the server says to a schedule that is being typed: the sentence, the
// next fires, or the fault at its place in the expression. The browser has no
// cron parser of its own: what fires is what is shown.
import './jobs.css'
import { keepPreviousData } from '@tanstack/react-query'
import { useQuery } from '../../api/useQuery'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../api/endpoints'
import { isApiError } from '../../api/problem'
import type { ProblemItem, ScheduleSpec } from '../../api/types'
import { unitOffset } from '../../lib/misc'
import { FireList } from './FireList'
import { useDebounced, useErrorText, useLang } from '../../ui/hooks'

const FIRES = 10
const TYPING_MS = 200

function usePreview(spec: ScheduleSpec | undefined, fires = FIRES) {
  const text = JSON.stringify(spec ?? null)
  const settled = useDebounced(text, TYPING_MS)
  const asked = useMemo(() => JSON.parse(settled) as ScheduleSpec | null, [settled])
  const query = useQuery({
    queryKey: ['preview', settled, fires],
    queryFn: ({ signal }) => api.previewSchedule(asked as ScheduleSpec, fires, signal),
    enabled: asked !== null && asked.kind !== 'none',
    staleTime: 10_000,
    placeholderData: keepPreviousData,
  })
  return { query, spec: asked }
}

/** The fault in the cron expression, for the field itself. */
export function useCronFault(spec: ScheduleSpec | undefined): { expr: string; fault: ProblemItem | undefined } {
  const { query, spec: asked } = usePreview(spec)
  const fault = isApiError(query.error, 'invalid_cron') ? query.error.items[0] : undefined
  return { expr: asked?.expr ?? '', fault: spec?.kind === 'cron' ? fault : undefined }
}

export function SchedulePreview({ spec, fires }: { spec: ScheduleSpec | undefined; fires?: number }) {
  const { t } = useTranslation()
  const lang = useLang()
  const errorText = useErrorText()
  const { query, spec: asked } = usePreview(spec, fires)
  if (spec?.kind === 'none') return <p className="muted">{t('jobs.preview.none')}</p>
  if (!spec || !asked) return <p className="muted">{t('jobs.preview.waiting')}</p>
  if (query.error) {
    const item = isApiError(query.error) ? query.error.items[0] : undefined
    return (
      <div role="alert" className="stack gap-1">
        <strong className="st-failed">✕ {errorText(query.error)}</strong>
        {item && <p>{item.message}</p>}
        {item?.hint && <p className="muted">{item.hint}</p>}
      </div>
    )
  }
  if (!query.data) return <span className="skeleton h-160 full" />
  return (
    <div className="stack gap-2" aria-live="polite">
      {query.data.text[lang] && <strong>{query.data.text[lang]}</strong>}
      <FireList fires={query.data.fires} neverFires={query.data.neverFires} zone={asked.zone} />
      {query.data.neverFires && <p className="muted small">{t('jobs.preview.mayBeSaved')}</p>}
    </div>
  )
}

/** The expression with the faulty part underlined. */
export function CronFault({ expr, item }: { expr: string; item: ProblemItem }) {
  const { t } = useTranslation()
  if (item.position === undefined) return null
  const from = unitOffset(expr, item.position)
  const to = Math.max(from + 1, unitOffset(expr, item.position + (item.length ?? 1)))
  return (
    <p className="cron-echo">
      {expr.slice(0, from)}
      <mark>{expr.slice(from, to) || '␣'}</mark>
      {expr.slice(to)} <span className="muted small">{t('jobs.preview.column', { n: from + 1 })}</span>
    </p>
  )
}
