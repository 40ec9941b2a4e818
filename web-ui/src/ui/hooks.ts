// Small hooks which several pages share.
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react'
import { useTranslation } from 'react-i18next'
import { isApiError } from '../api/problem'
import { getSession, subscribeSession, type Session } from '../api/session'
import type { Role } from '../api/types'
import { getConnection, serverNow, subscribeConnection, type ConnectionState } from '../lib/connection'
import type { Lang } from '../lib/prefs'
import { roleAtLeast } from '../lib/misc'
import { notification } from './notices'

export function useSession(): Session {
  return useSyncExternalStore(subscribeSession, getSession)
}

export function useCan(role: Role): boolean {
  return roleAtLeast(useSession()?.user.role, role)
}

export function useConnection(): ConnectionState {
  return useSyncExternalStore(subscribeConnection, getConnection)
}

const NARROW = '(max-width: 720px)'

function subscribeNarrow(listener: () => void): () => void {
  const query = matchMedia(NARROW)
  query.addEventListener('change', listener)
  return () => query.removeEventListener('change', listener)
}

/** The width of a phone, as in the style sheets. */
export function useNarrow(): boolean {
  return useSyncExternalStore(subscribeNarrow, () => matchMedia(NARROW).matches)
}

export function useLang(): Lang {
  const { i18n } = useTranslation()
  return i18n.language === 'zh' ? 'zh' : 'en'
}

// One timer for all countdowns of the page; it rests while nobody listens.
const tickListeners = new Set<() => void>()
let tickTimer: ReturnType<typeof setInterval> | undefined
let tickNow = serverNow()

function subscribeTick(listener: () => void): () => void {
  tickListeners.add(listener)
  tickTimer ??= setInterval(() => {
    tickNow = serverNow()
    for (const one of tickListeners) one()
  }, 1_000)
  return () => {
    tickListeners.delete(listener)
    if (tickListeners.size === 0) {
      clearInterval(tickTimer)
      tickTimer = undefined
    }
  }
}

/** Now by the server's clock, renewed each second, ms since the epoch. */
export function useNow(): number {
  return useSyncExternalStore(subscribeTick, () => {
    // The first reader after a rest must not see the time of the last one.
    if (tickListeners.size === 0 && Math.abs(serverNow() - tickNow) > 1_000) tickNow = serverNow()
    return tickNow
  })
}

export const useDebounced = <T>(value: T, delayMs: number): T => useDebouncedNow(value, delayMs)[0]

/** As useDebounced, with a function that takes the value at once. */
export function useDebouncedNow<T>(value: T, delayMs: number): [T, () => void] {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), delayMs)
    return () => clearTimeout(timer)
  }, [value, delayMs])
  return [settled, () => setSettled(value)]
}

/** The text for an error: translated by its code, never the bare server text. */
export function useErrorText(): (err: unknown) => string {
  const { t, i18n } = useTranslation()
  return useCallback(
    (err: unknown) => {
      const tenant = getSession()?.tenant.name ?? ''
      if (!isApiError(err)) return t('errors.unknown')
      if (err.quota) {
        const { kind, ...numbers } = err.quota
        return `${t('quotas.refused', { kind: t(`quotas.kind_${kind}`), ...numbers })} ${t('quotas.ask')}`
      }
      const key = `errors.${err.code}`
      return i18n.exists(key) ? t(key as 'errors.internal', { tenant }) : t('errors.unknown')
    },
    [t, i18n],
  )
}

/** Shows a failed action as a message with the request id. */
export function useShowError(): (err: unknown) => void {
  const { t } = useTranslation()
  const text = useErrorText()
  return useCallback(
    (err: unknown) => {
      const api = isApiError(err) ? err : undefined
      // The detail of a refusal with one item is that item again.
      const detail = api?.quota ? '' : (api?.detail ?? '')
      const details = [detail, ...(api?.items.map((item) => item.message).filter((text) => !detail.includes(text)) ?? [])].filter(Boolean).join(' · ')
      notification.error({
        title: text(err),
        description: [details, api?.requestId && `${t('errors.requestId')}: ${api.requestId}`].filter(Boolean).join('\n'),
        seconds: 8,
      })
    },
    [t, text],
  )
}

export function useDocumentTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title ? `${title} · Carillon` : 'Carillon'
  }, [title])
}

/**
 * Filters as the person last set them. The address follows a moment later
 * (the router loads first), and a second change made in that moment must
 * build on the first one.
 */
export function useDraftSearch<T extends object>(committed: T, commit: (next: T) => void): [T, (next: T) => void] {
  const key = JSON.stringify(committed)
  const [draft, setDraft] = useState({ key, value: committed })
  // The address has moved, by us or by Back: it is the truth again.
  if (draft.key !== key) setDraft({ key, value: committed })
  const set = (value: T) => {
    setDraft({ key, value })
    commit(value)
  }
  return [draft.key === key ? draft.value : committed, set]
}
