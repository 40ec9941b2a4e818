// A few lines beside what is pointed at or has the focus.
import { useEffect, useId, useLayoutEffect, useRef, useState, type ReactNode } from 'react'

const GAP_PX = 6
const EDGE_PX = 8
/** Against a flicker while the pointer crosses a list. */
const DELAY_MS = 120

interface Props {
  /** Drawn when it is shown. */
  hint: () => ReactNode
  children: ReactNode
}

/** Shown until the pointer or the focus leaves, or by Escape. */
export function Hint({ hint, children }: Props) {
  const [at, setAt] = useState<DOMRect>()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const id = useId()
  const hide = () => {
    clearTimeout(timer.current)
    setAt(undefined)
  }
  const show = (event: { currentTarget: HTMLElement }) => {
    const { currentTarget } = event
    clearTimeout(timer.current)
    timer.current = setTimeout(() => setAt(currentTarget.getBoundingClientRect()), DELAY_MS)
  }
  useEffect(() => () => clearTimeout(timer.current), [])
  useEffect(() => {
    if (!at) return
    const away = () => setAt(undefined)
    const onKey = (event: KeyboardEvent) => event.key === 'Escape' && away()
    document.addEventListener('keydown', onKey)
    document.addEventListener('scroll', away, true)
    return () => {
      document.removeEventListener('keydown', onKey)
      document.removeEventListener('scroll', away, true)
    }
  }, [at])
  return (
    <span onPointerEnter={show} onPointerLeave={hide} onFocus={show} onBlur={hide} aria-describedby={at && id}>
      {children}
      {at && (
        <Bubble id={id} at={at}>
          {hint()}
        </Bubble>
      )}
    </span>
  )
}

function Bubble({ id, at, children }: { id: string; at: DOMRect; children: ReactNode }) {
  const own = useRef<HTMLSpanElement>(null)
  // Above what it belongs to, or below where there is no room; never over the edge of the window.
  useLayoutEffect(() => {
    const { current } = own
    if (!current) return
    // The top layer: a table would cut it. Old browsers show it in its place.
    current.showPopover?.()
    const { width, height } = current.getBoundingClientRect()
    const above = at.top - height - GAP_PX
    current.style.top = `${above >= EDGE_PX ? above : at.bottom + GAP_PX}px`
    current.style.left = `${Math.max(EDGE_PX, Math.min(at.left + at.width / 2 - width / 2, innerWidth - width - EDGE_PX))}px`
  }, [at])
  return (
    <span ref={own} id={id} role="tooltip" popover="manual" className="hint">
      {children}
    </span>
  )
}
