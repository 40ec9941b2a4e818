// Folding of what is the same in a difference.
import type { ScriptDiff } from '../../api/types'

type Line = ScriptDiff['lines'][number]
export type Folded = (Line & { key: number }) | { op: 'folded'; count: number; key: number }

const AROUND = 3

/** Keeps AROUND lines beside each change. */
export function foldLines(lines: Line[]): Folded[] {
  const shown = lines.map(() => false)
  lines.forEach((line, i) => {
    if (line.op === 'same') return
    for (let at = Math.max(0, i - AROUND); at <= Math.min(lines.length - 1, i + AROUND); at++) shown[at] = true
  })
  const out: Folded[] = []
  lines.forEach((line, i) => {
    const last = out.at(-1)
    if (shown[i]) out.push({ ...line, key: i })
    else if (last?.op === 'folded') last.count++
    else out.push({ op: 'folded', count: 1, key: i })
  })
  return out
}
