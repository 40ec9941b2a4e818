// From the steps of an explanation to rows with the delays between them.
import type { ExplanationStep } from '../../api/types'

/** What a step is, for its sign; a newer server may know more. */
export type StepKind = 'planned' | 'claimed' | 'offered' | 'granted' | 'started' | 'finished' | 'delayed' | 'stop_asked' | 'returned' | 'part' | 'before' | 'spread' | 'after' | 'part_ended'

export interface StepRow {
  step: ExplanationStep
  kind: StepKind
  /** ms since the fire time; negative: ahead of it. */
  sinceFire: number
  /** ms since the step before; null for the first. */
  sinceLast: number | null
  /** The wait before it was long and nobody meant it to be. */
  slow: boolean
}

/** From this on a wait deserves to be seen; the server calls a start below it "on time". */
const SLOW_MS = 1_000

export function stepRows(steps: ExplanationStep[], fireAt: string): StepRow[] {
  const fire = Date.parse(fireAt)
  return steps.map((step, i) => {
    const at = Date.parse(step.at)
    const last = steps[i - 1]
    const sinceLast = last ? at - Date.parse(last.at) : null
    const kind = kindOf(step.code)
    // The row is written ahead, a handler takes its time, a retry waits on
    // purpose: none of these is a delay.
    // Only what passes after the fire time is one.
    const meant = kind === 'planned' || kind === 'finished' || kind === 'stop_asked' || last?.code === 'finished'
    return { step, kind, sinceFire: at - fire, sinceLast, slow: !meant && sinceLast !== null && Math.min(sinceLast, at - fire) >= SLOW_MS }
  })
}

/** The server's sentence without the error, which has a place of its own on the page. */
export function withoutError(text: string, error: string): string {
  const at = error ? text.indexOf(error) : -1
  if (at < 0) return text
  const before = text.slice(0, at).replace(/\s*[:：,，]?\s*["“]?$/, '')
  const after = text.slice(at + error.length).replace(/^["”]/, '')
  // A sentence that the error began has lost it with its full stop.
  return before ? before + after : after.replace(/^[\s.。:：]+/, '')
}

function kindOf(code: string): StepKind {
  return code.split(':', 1)[0] as StepKind
}
