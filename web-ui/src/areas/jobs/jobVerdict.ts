// The first sentence about a job: how its newest runs ended.
import type { LastRun } from '../../api/types'
import { isFailure } from '../../charts/pealGeometry'

export interface Verdict {
  /** none: no shown run has ended. */
  kind: 'failing' | 'well' | 'none'
  /** The newest run that succeeded or failed. */
  newest?: LastRun
  /** How many of the newest runs failed one after the other. */
  failed: number
  /** The first of them; undefined if it is older than the shown runs. */
  since?: LastRun
  /** The newest success among the shown runs. */
  lastSuccess?: LastRun
}

const counts = (run: LastRun) => run.state === 'succeeded' || isFailure(run.state)

/** Runs come newest first. Those that were cancelled, skipped or go on do not count. */
export function verdictOf(runs: readonly LastRun[]): Verdict {
  const ended = runs.filter(counts)
  const newest = ended[0]
  if (!newest) return { kind: 'none', failed: 0 }
  const good = ended.findIndex((run) => run.state === 'succeeded')
  const failed = good < 0 ? ended.length : good
  const lastSuccess = ended[good]
  const since = good > 0 ? ended[good - 1] : undefined
  return { kind: failed > 0 ? 'failing' : 'well', newest, failed, ...(since && { since }), ...(lastSuccess && { lastSuccess }) }
}
