// Which time the bars above a list of runs show.
import type { RunsSearch } from '../../lib/search'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The most days that bars of a day show. */
const DAYS = 366

export interface BarSpan {
  /** ISO 8601; whole hours or days of UTC. */
  from: string
  to: string
  step: 'hour' | 'day'
  /** ms since the epoch: the times that the list is narrowed to. */
  selected?: [number, number]
}

const iso = (ms: number) => new Date(ms).toISOString()
const up = (ms: number, step: number) => Math.ceil((ms + 1) / step) * step
const down = (ms: number, step: number) => Math.floor(ms / step) * step

function span(from: number, to: number, step: 'hour' | 'day', selected?: [number, number]): BarSpan {
  const length = step === 'hour' ? HOUR_MS : DAY_MS
  return { from: iso(down(from, length)), to: iso(up(to, length)), step, ...(selected && { selected }) }
}

/** The last day, week or month, whichever has the times that are asked for; or else these times. */
export function barSpan(search: RunsSearch, now: number): BarSpan {
  const last = (days: number, selected?: [number, number]) => span(now - days * DAY_MS + (days > 7 ? DAY_MS : HOUR_MS), now, days > 7 ? 'day' : 'hour', selected)
  switch (search.range) {
    case '1h':
      return last(1, [now - HOUR_MS, now])
    case '24h':
      return last(1)
    case '7d':
      return last(7)
    case '30d':
      return last(30)
  }
  if (!search.from && !search.to) return last(1)
  const to = search.to ? Math.min(Date.parse(search.to), now) : now
  const from = search.from ? Math.min(Date.parse(search.from), to) : to - DAY_MS
  const selected: [number, number] = [from, to]
  const days = [1, 7, 30].find((one) => from >= now - one * DAY_MS)
  if (days) return last(days, selected)
  const air = Math.max(DAY_MS, to - from)
  const begin = Math.max(from - air, to - DAYS * DAY_MS)
  return span(begin, Math.min(now, to + air), to - begin <= 7 * DAY_MS ? 'hour' : 'day', selected)
}
