// How instants are written on all pages: the person's choice. Whoever cannot
// hover sees the absolute times this way.
import { useSyncExternalStore } from 'react'
import { localZone } from '../lib/time'
import { loadTimeStyle, saveTimeStyle, type TimeStyle } from '../lib/prefs'

let style = loadTimeStyle()
const listeners = new Set<() => void>()

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const useTimeStyle = (): TimeStyle => useSyncExternalStore(subscribe, () => style)

/** Zone of the person's times. */
export const useZone = (): string => (useTimeStyle() === 'utc' ? 'UTC' : localZone)

export function setTimeStyle(next: TimeStyle): void {
  style = next
  saveTimeStyle(next)
  for (const listener of listeners) listener()
}
