import { useEffect, useRef, type ReactNode } from 'react'
import { arriveAt } from '../lib/focus'
import { useDocumentTitle, useNarrow } from './hooks'

interface Props {
  title: string
  /** What stands in the browser's tab when it differs from the title. */
  heading?: ReactNode
  crumbs?: ReactNode
  sub?: ReactNode
  /** What the page is for. On a phone only the title says it, so that the list is in view. */
  help?: string
  actions?: ReactNode
  /** The other pages of its subject. */
  tabs?: ReactNode
  children: ReactNode
}

/** One page: its title (also the tab's), what can be done, and its content. */
export function Page({ title, heading, crumbs, sub, help, actions, tabs, children }: Props) {
  const head = useRef<HTMLHeadingElement>(null)
  const narrow = useNarrow()
  useDocumentTitle(title)
  // One page may follow another of its kind: the same heading with a new title.
  useEffect(() => {
    if (title) arriveAt(head.current)
  }, [title])
  return (
    <>
      <div className="page-head">
        <div className="grow">
          {crumbs && <div className="crumbs">{crumbs}</div>}
          <h1 ref={head} tabIndex={-1}>{heading ?? title}</h1>
          {sub && <div className="muted">{sub}</div>}
          {help && !narrow && <div className="muted">{help}</div>}
        </div>
        {actions && <div className="row">{actions}</div>}
      </div>
      {tabs}
      {children}
    </>
  )
}
