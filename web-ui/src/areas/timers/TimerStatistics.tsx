// How timers have ended, also those that are deleted since.
import { useQuery } from '../../api/useQuery'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { timerApi } from './timers'
import { list } from '../../api/queries'
import type { RunEndings } from '../../api/types'
import { serverNow } from '../../lib/connection'
import { humanDuration } from '../../lib/duration'
import { formatInstant } from '../../lib/time'
import { Choice } from '../../ui/Choice'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { Blank } from '../../ui/States'

const STATES = ['succeeded', 'failed', 'timedOut', 'lost', 'cancelled', 'missed'] as const
const DAY_MS = 86_400_000
const POLL_MS = 60_000

/** How far back, and in what steps; the server keeps days for 3 years. */
const SPANS = { day: { days: 1, step: 'hour' }, week: { days: 6, step: 'day' }, month: { days: 29, step: 'day' }, all: { days: 398, step: 'day' } } as const
type Span = keyof typeof SPANS

const statisticsOf = (span: Span, executor?: string, handler?: string) =>
  list(
    ['timers', 'statistics', span, executor, handler],
    (signal) => timerApi.timerStatistics({ step: SPANS[span].step, from: new Date(serverNow() - SPANS[span].days * DAY_MS).toISOString(), executor, handler }, signal),
    POLL_MS,
  )

/** The total is a row of its own, the first one. */
type Row = RunEndings & { all?: true }

export function TimerStatistics({ executor, handler }: { executor?: string; handler?: string }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  const [span, setSpan] = useState<Span>('week')
  const statistics = useQuery({ ...statisticsOf(span, executor, handler), enabled: open })
  const { data } = statistics
  const byDay = SPANS[span].step === 'day'
  const rows: Row[] | undefined = data && data.items.length > 0 ? [{ ...data.total, all: true }, ...data.items] : data?.items
  const late = (ms?: number) => (ms === undefined ? <span className="muted">—</span> : <span className="num">{humanDuration(ms, t)}</span>)
  const columns: Column<Row>[] = [
    {
      key: 'at',
      title: t(byDay ? 'timers.stats.day' : 'timers.stats.hour'),
      kind: 'title',
      // The days are those of UTC.
      render: (one) => (one.all ? <strong>{t('timers.stats.all')}</strong> : <span className="num nowrap">{byDay ? one.at.slice(0, 10) : formatInstant(one.at, 'UTC').slice(0, 16)}</span>),
    },
    ...STATES.map(
      (state): Column<Row> => ({
        key: state,
        title: t(`timers.stats.${state}`),
        align: 'right',
        render: (one) => <span className={one[state] === 0 ? 'num muted' : 'num'}>{one[state].toLocaleString()}</span>,
      }),
    ),
    { key: 'late', title: t('timers.stats.late'), align: 'right', render: (one) => late(one.lateness?.meanMs) },
    { key: 'latest', title: t('timers.stats.latest'), align: 'right', render: (one) => late(one.lateness?.maxMs) },
  ]
  return (
    <details className="card flush" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="inset">{t('timers.stats.title')}</summary>
      <div className="row inset-below">
        <Choice always label={t('timers.stats.span')} value={span} onChange={(next) => next && setSpan(next)} options={(Object.keys(SPANS) as Span[]).map((value) => ({ value, label: t(`timers.stats.spans.${value}`) }))} />
        <span className="muted small">{t('timers.stats.help')}</span>
      </div>
      {open && (
        <ResourceTable
          label={t('timers.stats.title')}
          columns={columns}
          rows={rows}
          rowKey={(one) => (one.all ? 'all' : one.at)}
          error={statistics.error}
          onRetry={() => void statistics.refetch()}
          updatedAt={statistics.dataUpdatedAt}
          empty={<Blank title={t('timers.stats.emptyTitle')} help={t('timers.stats.emptyHelp')} />}
        />
      )}
    </details>
  )
}
