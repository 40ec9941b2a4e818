import { useEffect, useState, useSyncExternalStore } from 'react'
import { api } from '../api/endpoints'
import type { Id } from '../api/types'
import { lineOfHash } from '../lib/logFollow'
import { LogStore, type LogSnapshot } from '../lib/logStore'

/**
 * The live log of a run. Only a visible tab holds the long poll open: a
 * browser has six connections per server for all its tabs together.
 */
export function useRunLog(runId: Id): { store: LogStore; log: LogSnapshot } {
  const [store] = useState(
    () => new LogStore((query, signal) => api.runLog(runId, query, signal), lineOfHash(location.hash)),
  )
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
