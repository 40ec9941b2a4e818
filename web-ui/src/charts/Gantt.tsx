// Waiting, offers, attempts, the times between them and the parts of a run on one time axis.
import { useTranslation } from 'react-i18next'
import type { TFunction } from 'i18next'
import { humanDuration } from '../lib/duration'
import { formatClock, formatInstant } from '../lib/time'
import { runTone } from '../ui/StateChip'
import { ganttSpan, placeSegments, ROW_PX, segmentAt, type GanttKind, type GanttRow, type GanttSegment } from './ganttGeometry'
import { AXIS_PX, LegendItem, RIGHT_PX, TimeAxis } from './parts'
import { Plot } from './Plot'
import { lengthTicks, linear } from './scale'

const TOP_PX = 4
/** Room for names of rows; below this width they stand above their bars. */
const NAMES_PX = 118
const NARROW_PX = 520
const NAME_CHARS = 18
const KINDS: readonly GanttKind[] = ['wait', 'offer', 'run', 'report', 'gap', 'ghost']

interface Props {
  label: string
  rows: GanttRow[]
  zone: string
  /** Where the axis has its zero, ms since the epoch: the fire time. */
  start: number
  onOpen?: (runId: string) => void
}

function classOf({ kind, state }: GanttSegment): string {
  return kind === 'run' ? `gantt-bar run st-${runTone(state)}` : `gantt-bar ${kind}`
}

const words = (one: GanttSegment, t: TFunction) => (one.kind === 'run' ? `${t('charts.segment.run')}, ${t(`runs.state.${one.state}`)}` : t(`charts.segment.${one.kind}`))

export function Gantt({ label, rows, zone, start, onOpen }: Props) {
  const { t } = useTranslation()
  const [from, to] = ganttSpan(rows)
  const scale = (width: number) => linear(from, to, width < NARROW_PX ? RIGHT_PX : NAMES_PX, width - RIGHT_PX)
  const all = rows.flatMap((row, i) => row.segments.map((segment) => ({ row, i, segment })))
  const opens = onOpen && rows.some((row) => row.runId)
  const said = (place: number) => {
    const one = all[place]
    if (!one) return ''
    const { segment, row } = one
    return `${row.name} · ${words(segment, t)} · ${humanDuration(segment.to - segment.from, t)} · ${formatInstant(segment.from, zone, true)}–${formatClock(segment.to, zone)} ${zone}`
  }
  const marks = rows.flatMap((row) => row.marks ?? []).filter((mark) => mark.at <= to)
  return (
    <Plot
      label={label}
      height={TOP_PX + rows.length * ROW_PX + AXIS_PX}
      places={all.length}
      placeAt={(x, width, y) => segmentAt(placeSegments(rows, scale(width), TOP_PX), x, y, TOP_PX)}
      readout={said}
      onOpen={
        opens
          ? (place) => {
              const id = all[place]?.row.runId
              if (id) onOpen(id)
            }
          : undefined
      }
      draw={(width, cursor) => <Drawing {...{ rows, start, width, cursor, from, to }} x={scale(width)} />}
      notes={[t('charts.since', { start: `${formatInstant(start, zone, true)} ${zone}` })]}
      legend={
        <>
          {KINDS.flatMap((kind) => {
            const sample = all.findLast((one) => one.segment.kind === kind)?.segment
            if (!sample) return []
            const thick = kind === 'run' || kind === 'ghost'
            return [
              <LegendItem key={kind} mark={<rect className={classOf(sample)} x={1} y={thick ? 1 : 4} width={12} height={thick ? 10 : 4} />}>
                {t(`charts.segment.${kind}`)}
              </LegendItem>,
            ]
          })}
          {[...new Map(marks.map((mark) => [mark.kind, mark])).values()].map((mark) => (
            <LegendItem key={mark.kind} mark={<path className={`gantt-mark ${mark.kind}`} d="M7 0v12" />}>
              {mark.kind === 'step' ? t('charts.step') : mark.name}
            </LegendItem>
          ))}
        </>
      }
      table={() => ({
        head: [t('charts.row'), t('charts.what'), t('charts.time'), t('runs.list.duration')],
        rows: all.map(({ row, segment }) => [row.name, words(segment, t), `${formatInstant(segment.from, zone, true)} ${zone}`, humanDuration(segment.to - segment.from, t)]),
      })}
    />
  )
}

interface DrawingProps {
  rows: GanttRow[]
  start: number
  width: number
  cursor: number
  from: number
  to: number
  x: (at: number) => number
}

function Drawing({ rows, start, width, cursor, from, to, x }: DrawingProps) {
  const { t } = useTranslation()
  const narrow = width < NARROW_PX
  const label = (ms: number) => (ms === 0 ? t('unit.s', { n: 0 }) : `${ms > 0 ? '+' : '−'}${humanDuration(Math.abs(ms), t)}`)
  const left = narrow ? RIGHT_PX : NAMES_PX
  const bottom = TOP_PX + rows.length * ROW_PX
  return (
    <g className="gantt">
      <TimeAxis ticks={lengthTicks(from, to, width - left - RIGHT_PX, start, label)} x={x} top={TOP_PX} bottom={bottom} left={left} width={width} />
      {rows.map((row, i) => (
        <g key={row.key}>
          <line className="grid" x1={0} x2={width - RIGHT_PX} y1={TOP_PX + (i + 1) * ROW_PX} y2={TOP_PX + (i + 1) * ROW_PX} />
          {!narrow && (
            <text className="tick" x={0} y={TOP_PX + i * ROW_PX + ROW_PX / 2 + 4}>
              {row.name.length > NAME_CHARS ? `${row.name.slice(0, NAME_CHARS - 1)}…` : row.name}
            </text>
          )}
        </g>
      ))}
      {placeSegments(rows, x, TOP_PX).map((one, i) => (
        <rect key={`${one.row}-${one.kind}-${one.from}`} className={`${classOf(one)}${i === cursor ? ' current' : ''}`} x={one.x} y={one.y} width={one.width} height={one.height} rx={one.kind === 'run' ? 2 : 0} />
      ))}
      {rows.map((row, i) =>
        (row.marks ?? []).filter((mark) => mark.at <= to).map((mark) => <line key={`${row.key}-${mark.kind}-${mark.at}`} className={`gantt-mark ${mark.kind}`} x1={x(mark.at)} x2={x(mark.at)} y1={TOP_PX + i * ROW_PX + 3} y2={TOP_PX + (i + 1) * ROW_PX - 3} />),
      )}
    </g>
  )
}
