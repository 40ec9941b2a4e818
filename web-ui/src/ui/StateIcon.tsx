// One set of drawings for all states. Characters would be empty boxes on systems without them.
import type { ReactNode } from 'react'

const circle = <circle cx={7} cy={7} r={5.25} />
const ban = (
  <>
    {circle}
    <path d="M3.4 10.6l7.2-7.2" />
  </>
)

const DRAWINGS = {
  check: <path d="M2.5 7.5l3 3 6-7" />,
  cross: <path d="M3 3l8 8M11 3l-8 8" />,
  play: <path className="filled" d="M4 2.5l7 4.5-7 4.5z" />,
  stop: <rect className="filled" x={3} y={3} width={8} height={8} rx={1} />,
  pause: <path d="M4.75 3v8M9.25 3v8" />,
  dot: <circle className="filled" cx={7} cy={7} r={4} />,
  ring: circle,
  dashed: <circle cx={7} cy={7} r={5.25} strokeDasharray="2.2 2" />,
  half: (
    <>
      {circle}
      <path className="filled" d="M7 1.75a5.25 5.25 0 0 0 0 10.5z" />
    </>
  ),
  dots: (
    <>
      <circle className="filled" cx={2.75} cy={7} r={1.25} />
      <circle className="filled" cx={7} cy={7} r={1.25} />
      <circle className="filled" cx={11.25} cy={7} r={1.25} />
    </>
  ),
  arrow: <path d="M2 7h9.5M8 3.5L11.5 7 8 10.5" />,
  again: <path d="M11.5 4.2A5 5 0 1 0 12 7M11.8 1.5v2.9H8.9" />,
  ban,
  skip: <path d="M2 10c0-6 9-6 9.5-.5M8.5 7.2l3 2.5L13 6" />,
  question: (
    <>
      <path d="M4.2 4.6a2.8 2.8 0 1 1 4 2.6c-.9.5-1.2.9-1.2 1.8" />
      <circle className="filled" cx={7} cy={11.6} r={1} />
    </>
  ),
  /** Of what ran out of time. */
  timer: (
    <>
      <circle cx={7} cy={8} r={4.75} />
      <path d="M7 5.2V8l1.9 1.4M5.2 1.25h3.6" />
    </>
  ),
  /** Of what has its time still to come. */
  clock: (
    <>
      {circle}
      <path d="M7 4v3l2.2 1.4" />
    </>
  ),
  stopping: (
    <>
      <rect x={2.5} y={2.5} width={9} height={9} rx={1} />
      <rect className="filled" x={2.5} y={2.5} width={4.5} height={9} />
    </>
  ),
  warning: (
    <>
      <path d="M7 1.8l5.6 10H1.4z" />
      <path d="M7 5.5v3" />
      <circle className="filled" cx={7} cy={10.2} r={0.7} />
    </>
  ),
} satisfies Record<string, ReactNode>

export type IconName = keyof typeof DRAWINGS

export const ICON_NAMES = Object.keys(DRAWINGS) as IconName[]

/** Decoration: the word beside it says the same. */
export function StateIcon({ name }: { name: IconName }) {
  return (
    <svg className="state-drawn" viewBox="0 0 14 14" aria-hidden="true">
      {DRAWINGS[name]}
    </svg>
  )
}
