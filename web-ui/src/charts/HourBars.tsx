// How runs ended, by hour or by day. Failures hang below the baseline. A bar opens the list
// of its runs; where a span can be selected, a drag or Shift with the arrow keys does so.
import { useId } from 'react'
import { useTranslation } from 'react-i18next'
import type { TFunction } from 'i18next'
import type { RunEndings, Statistics } from '../api/types'
import { serverNow } from '../lib/connection'
import { formatInstant } from '../lib/time'
import { ABOVE, barsOf, BELOW, countOf, failuresOf, stepAt, type BarPart, type Outcome } from './barGeometry'
import { AXIS_PX, Hatching, LEFT_PX, LegendItem, RIGHT_PX, TimeAxis, ValueAxis } from './parts'
import { Plot } from './Plot'
import { countTicks, linear, timeTicks } from './scale'
import { useNow } from '../ui/hooks'

const OUTCOMES: readonly Outcome[] = [...ABOVE, ...BELOW]
const TONES: Record<Outcome, string> = { succeeded: 'success', cancelled: 'killed', unstarted: 'skipped', failed: 'failed', timedOut: 'timeout', lost: 'lost' }
/** Outlines tell these apart without colour; timeouts are hatched. */
const SHAPES: Partial<Record<Outcome, string>> = { cancelled: 'hollow', unstarted: 'dashed', lost: 'hollow', timedOut: 'hatched' }
const HOUR_MS = 3_600_000
const STEP_MS = { minute: 60_000, hour: HOUR_MS, day: 24 * HOUR_MS }
const TOP_PX = 8
/** Bars of one day have a tick every 3 hours. */
const DAY_TICK_MS = 3 * HOUR_MS

interface Props {
  data: Pick<Statistics, 'from' | 'to' | 'step' | 'items' | 'total'>
  label: string
  zone: string
  /** px; default 160. */
  height?: number
  /** Opens the runs from an instant to another one, both in ISO 8601. */
  onOpen?: (from: string, to: string) => void
  onSelect?: (from: string, to: string) => void
  /** ms since the epoch: what is selected now. */
  selected?: [number, number]
}

function words(one: Omit<RunEndings, 'at' | 'lateness' | 'duration'>, t: TFunction): string {
  const parts = OUTCOMES.flatMap((outcome) => {
    const n = countOf(one, outcome)
    return n > 0 ? [`${n.toLocaleString()} ${t(`charts.outcome.${outcome}`)}`] : []
  })
  return parts.join(', ') || t('charts.none')
}

/** "2026-11-21 10:00–11:00", or the day of a step of a day. */
function spanText(at: number, step: number, zone: string): string {
  const from = formatInstant(at, zone)
  return step >= STEP_MS.day ? `${from.slice(0, 16)} + 24 h` : `${from.slice(0, 16)}–${formatInstant(at + step, zone).slice(11, 16)}`
}

export function HourBars({ data, label, zone, height = 160, onOpen, onSelect, selected }: Props) {
  const { t } = useTranslation()
  const hatch = useId()
  const step = STEP_MS[data.step]
  const from = Date.parse(data.from)
  const to = Date.parse(data.to)
  const room = height - AXIS_PX - TOP_PX
  const shape = barsOf(data.items, from, to, step, 1, room)
  const byStart = new Map(data.items.map((one) => [Date.parse(one.at), one]))
  const at = (place: number) => shape.starts[place] ?? from
  const said = (place: number) => {
    const one = byStart.get(at(place))
    const yet = at(place) + step > serverNow() ? `, ${t('charts.soFar')}` : ''
    return `${spanText(at(place), step, zone)} ${zone}: ${one ? words(one, t) : t('charts.none')}${yet}`
  }
  const range = (first: number, last = first) => [new Date(at(first)).toISOString(), new Date(at(last) + step).toISOString()] as const
  const there = OUTCOMES.filter((outcome) => countOf(data.total, outcome) > 0)
  const scaled = shape.mostBelow > 0 && shape.mostAbove > 0 && shape.perBelow > shape.perAbove * 1.01
  return (
    <Plot
      label={`${label}: ${words(data.total, t)}`}
      height={height}
      places={shape.starts.length}
      placeAt={(x, width) => stepAt(x - LEFT_PX, width - LEFT_PX - RIGHT_PX, shape.starts.length)}
      readout={said}
      onOpen={onOpen && ((place) => onOpen(...range(place)))}
      onSelect={onSelect && ((first, last) => onSelect(...range(first, last)))}
      draw={(width, cursor, span) => <Drawing {...{ data, from, to, step, zone, width, room, cursor, span, selected, hatch }} />}
      notes={[t('charts.zone', { zone }), ...(scaled ? [t('charts.ownScale')] : [])]}
      legend={there.map((outcome) => (
        <LegendItem key={outcome} mark={<Part part={{ outcome, x: 1, y: 1, width: 12, height: 10 }} hatch={hatch} />}>
          {t(`charts.outcome.${outcome}`)}
        </LegendItem>
      ))}
      table={() => ({
        head: [t('charts.time'), ...there.map((outcome) => t(`charts.outcome.${outcome}`))],
        rows: data.items.map((one) => [`${spanText(Date.parse(one.at), step, zone)} ${zone}`, ...there.map((outcome) => countOf(one, outcome).toLocaleString())]),
      })}
    />
  )
}

function Part({ part, hatch }: { part: BarPart; hatch: string }) {
  const shape = SHAPES[part.outcome]
  const inset = shape ? 0.5 : 0
  return (
    <rect
      className={`bar st-${TONES[part.outcome]} ${shape ?? ''}`}
      x={part.x + inset}
      y={part.y + inset}
      width={Math.max(0.5, part.width - 2 * inset)}
      height={Math.max(0.5, part.height - 2 * inset)}
      {...(part.outcome === 'timedOut' && { fill: `url(#${hatch})` })}
    />
  )
}

interface DrawingProps {
  data: Props['data']
  from: number
  to: number
  step: number
  zone: string
  width: number
  room: number
  cursor: number
  span: [number, number] | undefined
  selected: [number, number] | undefined
  hatch: string
}

function Drawing({ data, from, to, step, zone, width, room, cursor, span, selected, hatch }: DrawingProps) {
  const inner = width - LEFT_PX - RIGHT_PX
  const bars = barsOf(data.items, from, to, step, inner, room)
  const x = linear(from, to, LEFT_PX, width - RIGHT_PX)
  const slot = inner / Math.max(1, bars.starts.length)
  const [low, high] = span ? [from + span[0] * step, from + (span[1] + 1) * step] : (selected ?? [0, 0])
  const [left, right] = [x(Math.max(from, low)), x(Math.min(to, high))]
  const above = bars.perAbove > 0 ? countTicks(bars.mostAbove, Math.max(1, Math.floor(bars.base / 34))).map((n) => ({ y: TOP_PX + bars.base - n * bars.perAbove, label: n.toLocaleString() })) : [{ y: TOP_PX + bars.base, label: '0' }]
  const below = bars.mostBelow > 0 ? [{ y: TOP_PX + bars.base + bars.mostBelow * bars.perBelow, label: bars.mostBelow.toLocaleString() }] : []
  // The last bar grows until its hour is over.
  const now = Math.min(to, useNow())
  const ticks = timeTicks(from, to, inner, zone, to - from <= 26 * HOUR_MS ? DAY_TICK_MS : 0)
  return (
    <>
      <defs>
        <Hatching id={hatch} tone="timeout" />
      </defs>
      {now < to && <rect className="to-come" x={x(now)} width={x(to) - x(now)} y={TOP_PX} height={room} />}
      <ValueAxis ticks={[...above, ...below]} width={width} />
      <TimeAxis ticks={ticks} x={x} top={TOP_PX} bottom={TOP_PX + room} width={width} />
      {right > left && <rect className="chosen" x={left} width={right - left} y={TOP_PX} height={room} />}
      {cursor >= 0 && <rect className="cursor" x={LEFT_PX + cursor * slot} width={Math.max(1, slot)} y={TOP_PX} height={room} />}
      <g transform={`translate(${LEFT_PX} ${TOP_PX})`}>
        {bars.parts.map((part) => (
          <Part key={`${part.x}-${part.outcome}`} part={part} hatch={hatch} />
        ))}
      </g>
      <line className="base" x1={LEFT_PX} x2={width - RIGHT_PX} y1={TOP_PX + bars.base} y2={TOP_PX + bars.base} />
    </>
  )
}

/** Sum of all, in the words of the readout. */
export function FailureShare({ total }: { total: Statistics['total'] }) {
  const { t } = useTranslation()
  const failed = failuresOf(total)
  const all = failed + total.succeeded
  if (all === 0) return null
  return <span className={failed > 0 ? 'st-failed' : 'muted'}>{t('charts.failedOf', { failed, count: all })}</span>
}
