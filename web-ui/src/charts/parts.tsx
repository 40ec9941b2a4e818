// Parts that several pictures draw: axes, marks of the legend, a hatching.
import type { ReactNode } from 'react'
import { CHAR_PX, type Scale, type TimeTick } from './scale'

/** Room for the labels of an axis. */
export const AXIS_PX = 18
export const LEFT_PX = 46
export const RIGHT_PX = 10

/** Times below a picture, with a line up through it. */
export function TimeAxis({ ticks, x, top, bottom, width, left = LEFT_PX }: { ticks: TimeTick[]; x: Scale; top: number; bottom: number; width: number; left?: number }) {
  return (
    <g>
      <line className="axis" x1={left} x2={width - RIGHT_PX} y1={bottom} y2={bottom} />
      {ticks.map((tick, i) => {
        const at = x(tick.at)
        const half = (tick.label.length * CHAR_PX) / 2
        const before = ticks[i - 1]
        const next = ticks[i + 1]
        // Below the axis on the left it would lie over that axis's lowest label.
        const pushed = at - half < left - 6 && (!next || x(next.at) - half > at + 2 * half)
        const anchor = at + half > width - 1 ? 'end' : pushed ? 'start' : 'middle'
        // A label that the edge pushes back may touch the one before it.
        const free = anchor !== 'end' || !before || width - 1 - 2 * half > x(before.at) + half
        return (
          <g key={tick.at}>
            <line className="grid" x1={at} x2={at} y1={top} y2={bottom} />
            {free && (
              <text className="tick" x={anchor === 'end' ? width - 1 : at} y={bottom + 13} textAnchor={anchor}>
                {tick.label}
              </text>
            )}
          </g>
        )
      })}
    </g>
  )
}

/** Values beside a picture. */
export function ValueAxis({ ticks, width }: { ticks: { y: number; label: string }[]; width: number }) {
  return (
    <g>
      {ticks.map((tick) => (
        <g key={`${tick.y}-${tick.label}`}>
          <line className="grid" x1={LEFT_PX} x2={width - RIGHT_PX} y1={tick.y} y2={tick.y} />
          <text className="tick" x={LEFT_PX - 6} y={tick.y + 4} textAnchor="end">
            {tick.label}
          </text>
        </g>
      ))}
    </g>
  )
}

/** Oblique lines, for a colour that is told by its shape too. */
export function Hatching({ id, tone }: { id: string; tone: string }) {
  return (
    <pattern id={id} className={`st-${tone}`} width={5} height={5} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect className="hatch-ground" width={5} height={5} />
      <line className="hatch-line" x1={0} x2={0} y1={0} y2={5} />
    </pattern>
  )
}

export function LegendItem({ mark, children }: { mark: ReactNode; children: ReactNode }) {
  return (
    <li>
      <svg aria-hidden="true" width={14} height={12} viewBox="0 0 14 12">
        {mark}
      </svg>
      {children}
    </li>
  )
}
