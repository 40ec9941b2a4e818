// What was stored before, newest first: who, when, and what it changed.
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ErrorState } from './States'
import { AbsoluteTime } from './TimeText'

/** A card of versions; asks again on a failure. */
export function Versions<T>({ title, list, children }: { title: string; list: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  if (list.error && !list.data) return <ErrorState error={list.error} onRetry={() => void list.refetch()} />
  return (
    <section className="card flush" aria-label={title}>
      <div className="card-head">
        <h2>{title}</h2>
      </div>
      {list.data ? children(list.data) : <span className="skeleton h-80 full" />}
    </section>
  )
}

interface Props {
  title: string
  who: string
  at: string
  action?: ReactNode
  children: ReactNode
}

export function Version({ title, who, at, action, children }: Props) {
  return (
    <div className="version">
      <div className="card-head">
        <h3>{title}</h3>
        <span className="muted">
          {who} · <AbsoluteTime at={at} />
        </span>
        {action}
      </div>
      {children}
    </div>
  )
}
