import { useEffect, useMemo, useSyncExternalStore } from 'react'
import { api } from '../../../api/endpoints'
import type { Id, LogLevel } from '../../../api/types'
import { LogStore, type Fetch, type LogSnapshot } from './logStore'

/** Asks the server for the log of a run. */
export function logOf(runId: Id): Fetch {
  return (query, signal) => api.runLog(runId, query, signal)
}

/**
 * The live log of a run, or those of its lines that are asked for, from its end
 * or around a line. Only a visible tab holds the long poll open: a browser has
 * six connections per server for all its tabs together.
 */
export function useRunLog(runId: Id, level: LogLevel | undefined, q: string | undefined, target: number | undefined): { store: LogStore; log: LogSnapshot } {
  const store = useMemo(() => new LogStore(logOf(runId), { ...(level && { level }), ...(q && { q }) }, target), [runId, level, q, target])
  useEffect(() => {
    let controller: AbortController | undefined
    const sync = () => {
      if (document.hidden) {
        controller?.abort()
        controller = undefined
      } else if (!controller) {
        controller = new AbortController()
        void store.run(controller.signal)
      }
    }
    sync()
    document.addEventListener('visibilitychange', sync)
    return () => {
      document.removeEventListener('visibilitychange', sync)
      controller?.abort()
    }
  }, [store])
  return { store, log: useSyncExternalStore(store.subscribe, store.get) }
}
