// p50 and p95 of durations over time with a bound, and the runs as dots. Both axes have
// ticks; the vertical one is logarithmic.
import { useTranslation } from 'react-i18next'
import type { RunState } from '../api/types'
import { humanDuration } from '../lib/duration'
import { formatInstant } from '../lib/time'
import { runTone } from '../ui/StateChip'
import { bandPaths, bandScale, DOT_PATHS, dotShape, nearest, type BandStep } from './bandGeometry'
import { AXIS_PX, LEFT_PX, LegendItem, RIGHT_PX, TimeAxis, ValueAxis } from './parts'
import { Plot } from './Plot'
import { durationTicks, linear, timeTicks } from './scale'

const TOP_PX = 8

export interface Dot {
  id: string
  /** ms since the epoch */
  at: number
  ms: number
  state: RunState
}

interface Props {
  label: string
  steps: BandStep[]
  from: number
  to: number
  zone: string
  bound?: { ms: number; name: string }
  dots?: Dot[]
  height?: number
  onOpen?: (dot: Dot | undefined, step: BandStep | undefined) => void
  onSelect?: (from: string, to: string) => void
  selected?: [number, number]
}

/** A share that lies in one bucket with the other one is known about only. */
function useSpreadText() {
  const { t } = useTranslation()
  return ({ spread: { p50Ms, p95Ms, count } }: BandStep) =>
    `${p50Ms === p95Ms ? `≈ ${humanDuration(p50Ms, t)}` : `p50 ${humanDuration(p50Ms, t)}, p95 ${humanDuration(p95Ms, t)}`} · ${t('charts.ofRuns', { count })}`
}

export function Band(props: Props) {
  const { t } = useTranslation()
  const spreadText = useSpreadText()
  const { label, from, to, zone, bound, height = 160, onOpen, onSelect } = props
  const steps = props.steps.toSorted((a, b) => a.from - b.from)
  const dots = props.dots?.toSorted((a, b) => a.at - b.at)
  const centres = dots ? dots.map((dot) => dot.at) : steps.map((one) => (one.from + one.to) / 2)
  const stamp = (at: number) => `${formatInstant(at, zone).slice(0, 16)} ${zone}`
  const said = (place: number) => {
    const dot = dots?.[place]
    if (dot) return `${stamp(dot.at)}: ${humanDuration(dot.ms, t)}, ${t(`runs.state.${dot.state}`)}`
    const one = steps[place]
    return one ? `${stamp(one.from)}: ${spreadText(one)}` : ''
  }
  const range = (first: number, last: number): [string, string] => {
    const begin = dots ? (dots[first]?.at ?? from) : (steps[first]?.from ?? from)
    // The last run belongs to the span, whose end does not.
    const end = dots ? (dots[last]?.at ?? to) + 1_000 : (steps[last]?.to ?? to)
    return [new Date(begin).toISOString(), new Date(end).toISOString()]
  }
  const states = [...new Set(dots?.map((dot) => dot.state))]
  return (
    <Plot
      label={label}
      height={height}
      places={centres.length}
      placeAt={(x, width) => {
        const scale = linear(from, to, LEFT_PX, width - RIGHT_PX)
        return nearest(centres.map(scale), x)
      }}
      readout={said}
      onOpen={onOpen && ((place) => onOpen(dots?.[place], steps[place]))}
      onSelect={onSelect && ((first, last) => onSelect(...range(first, last)))}
      draw={(width, cursor, span) => <Drawing {...props} {...{ steps, dots, width, height, cursor, chosen: span ? range(...span).map((one) => Date.parse(one)) : props.selected }} />}
      notes={[t('charts.zone', { zone })]}
      legend={
        <>
          {steps.length > 0 && (
            <>
              <LegendItem mark={<path className="p50" d="M0 6h14" />}>p50</LegendItem>
              <LegendItem mark={<path className="p95" d="M0 6h14" />}>p95</LegendItem>
            </>
          )}
          {bound && (
            <LegendItem mark={<path className="bound" d="M0 6h14" />}>
              {bound.name} {humanDuration(bound.ms, t)}
            </LegendItem>
          )}
          {states.map((state) => (
            <LegendItem key={state} mark={<DotMark state={state} x={7} y={6} />}>
              {t(`runs.state.${state}`)}
            </LegendItem>
          ))}
        </>
      }
      table={() =>
        dots
          ? { head: [t('charts.time'), t('runs.list.duration'), t('field.state')], rows: dots.toReversed().map((dot) => [stamp(dot.at), humanDuration(dot.ms, t), t(`runs.state.${dot.state}`)]) }
          : { head: [t('charts.time'), 'p50', 'p95', t('charts.runs')], rows: steps.toReversed().map((one) => [stamp(one.from), humanDuration(one.spread.p50Ms, t), humanDuration(one.spread.p95Ms, t), one.spread.count.toLocaleString()]) }
      }
    />
  )
}

function DotMark({ state, x, y, current = false }: { state: RunState; x: number; y: number; current?: boolean }) {
  const shape = dotShape(state)
  return <path className={`dot ${shape} st-${runTone(state)}${current ? ' current' : ''}`} d={DOT_PATHS[shape]} transform={`translate(${x} ${y})${current ? ' scale(1.6)' : ''}`} />
}

interface DrawingProps extends Props {
  width: number
  height: number
  cursor: number
  chosen: number[] | undefined
}

function Drawing({ steps, dots, from, to, zone, bound, width, height, cursor, chosen }: DrawingProps) {
  const { t } = useTranslation()
  const bottom = height - AXIS_PX
  const { y, low, high } = bandScale(steps, [...(dots?.map((dot) => dot.ms) ?? []), ...(bound ? [bound.ms] : [])], bottom - TOP_PX)
  const down = (ms: number) => TOP_PX + y(ms)
  const x = linear(from, to, LEFT_PX, width - RIGHT_PX)
  const paths = bandPaths(steps, x, down)
  const dot = dots?.[cursor]
  const step = dots ? undefined : steps[cursor]
  const clipped = (at: number) => Math.min(width - RIGHT_PX, Math.max(LEFT_PX, x(at)))
  const [begin = 0, end = 0] = chosen ?? []
  return (
    <>
      <ValueAxis ticks={durationTicks(low, high, bottom - TOP_PX).map((ms) => ({ y: down(ms), label: humanDuration(ms, t) }))} width={width} />
      <TimeAxis ticks={timeTicks(from, to, width - LEFT_PX - RIGHT_PX, zone, to - from <= 26 * 3_600_000 && to - from > 20 * 3_600_000 ? 3 * 3_600_000 : 0)} x={x} top={TOP_PX} bottom={bottom} width={width} />
      {clipped(end) > clipped(begin) && <rect className="chosen" x={clipped(begin)} width={clipped(end) - clipped(begin)} y={TOP_PX} height={bottom - TOP_PX} />}
      {step && <rect className="cursor" x={clipped(step.from)} width={Math.max(1, clipped(step.to) - clipped(step.from))} y={TOP_PX} height={bottom - TOP_PX} />}
      <path className="band-area" d={paths.area} />
      <path className="p50" d={paths.p50} />
      <path className="p95" d={paths.p95} />
      {bound && <line className="bound" x1={LEFT_PX} x2={width - RIGHT_PX} y1={down(bound.ms)} y2={down(bound.ms)} />}
      {dots?.map((one) => one !== dot && <DotMark key={one.id} state={one.state} x={x(one.at)} y={down(one.ms)} />)}
      {dot && <DotMark state={dot.state} x={x(dot.at)} y={down(dot.ms)} current />}
    </>
  )
}
