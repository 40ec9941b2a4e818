// Couples the follow reducer with a scrolling box.
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import { useEffect, useLayoutEffect, useReducer, useRef, type RefObject } from 'react'
import { follow, isAtEnd } from './logFollow'

const LINE_PX = 20
const OVERSCAN = 12
// A scroll event this soon after a wheel, key or touch is the person's.
const USER_MS = 1_000

export interface Follow {
  box: RefObject<HTMLDivElement | null>
  virtual: Virtualizer<HTMLDivElement, Element>
  following: boolean
  unseen: number
  toggle: () => void
  stop: () => void
  jump: () => void
  scrollTo: (index: number) => void
  onScroll: () => void
  /** A wheel, key, touch or press inside the box. */
  onIntent: () => void
}

/**
 * Couples `count` lines with the box. `caughtUp` says that all lines stored so
 * far are among them: what comes later is new, what came before was only
 * being loaded. With another `source` the lines are others, and none is new.
 */
export function useFollow(count: number, initially: boolean, caughtUp: boolean, source: unknown): Follow {
  const box = useRef<HTMLDivElement>(null)
  const intentAt = useRef(0)
  const lastTop = useRef(0)
  const last = useRef({ count, caughtUp, source })
  const [state, send] = useReducer(follow, { following: initially, unseen: 0 })
  const virtual = useVirtualizer<HTMLDivElement, Element>({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PX,
    overscan: OVERSCAN,
  })

  useEffect(() => {
    const added = count - last.current.count
    const isNew = last.current.caughtUp && last.current.source === source
    last.current = { count, caughtUp, source }
    if (added > 0 && isNew) send({ type: 'lines', added })
  }, [count, caughtUp, source])

  const total = virtual.getTotalSize()
  useLayoutEffect(() => {
    if (state.following && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [state.following, count, total])

  const onScroll = () => {
    const el = box.current
    if (!el) return
    const up = el.scrollTop < lastTop.current
    lastTop.current = el.scrollTop
    const byUser = Date.now() - intentAt.current < USER_MS
    const atEnd = isAtEnd(el)
    // Moving down onto the end by hand resumes; being there while lines are
    // measured says nothing.
    if (atEnd ? byUser && !up : up && byUser) send({ type: 'scroll', atEnd, byUser })
  }
  return {
    box,
    virtual,
    following: state.following,
    unseen: state.unseen,
    toggle: () => send({ type: 'toggle' }),
    stop: () => state.following && send({ type: 'toggle' }),
    jump: () => send({ type: 'jump' }),
    scrollTo: (index) => virtual.scrollToIndex(index, { align: 'center' }),
    onScroll,
    onIntent: () => {
      intentAt.current = Date.now()
    },
  }
}
