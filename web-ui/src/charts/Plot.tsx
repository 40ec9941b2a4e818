// The frame of a picture: its width, the cursor of keyboard and pointer, the span that a
// drag selects, the line that reads out a value, and the numbers as a table.
import { useLayoutEffect, useRef, useState, type KeyboardEvent, type MouseEvent, type PointerEvent, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { AsTable, type ChartTable } from './AsTable'
import { moveCursor } from './pealGeometry'
import './charts.css'
import './plot.css'

/** Width until it is measured. */
const FIRST_PX = 640
/** A drag shorter than this is a click. */
const CLICK_PX = 5

export interface PlotProps {
  /** What is shown, with its main number. */
  label: string
  height: number
  /** How many places the cursor has. */
  places: number
  /** The place at x and y of a drawing of this width; -1 outside. */
  placeAt: (x: number, width: number, y: number) => number
  readout: (place: number) => string
  /** Enter or a click. */
  onOpen?: (place: number) => void
  /** A drag, or Shift with arrow keys and then Enter. Both places belong to it. */
  onSelect?: (first: number, last: number) => void
  draw: (width: number, cursor: number, span: [number, number] | undefined) => ReactNode
  /** Entries of the legend, each a list item. */
  legend?: ReactNode
  /** Said below the picture, such as the zone of its times. */
  notes: string[]
  table: () => ChartTable
}

function useWidth() {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(FIRST_PX)
  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    const measure = () => element.clientWidth > 0 && setWidth(element.clientWidth)
    measure()
    const watch = new ResizeObserver(measure)
    watch.observe(element)
    return () => watch.disconnect()
  }, [])
  return { box, width }
}

const ordered = (a: number, b: number): [number, number] => (a <= b ? [a, b] : [b, a])

/** Cursor and span; both go when the picture loses the focus or the pointer. */
function useCursor({ places, placeAt, onOpen, onSelect }: PlotProps, width: number) {
  const [cursor, setCursor] = useState(-1)
  const [anchor, setAnchor] = useState<number>()
  const drag = useRef<{ x: number; place: number; moved: boolean }>(undefined)
  const under = (event: MouseEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect()
    return placeAt(box.width > 0 ? ((event.clientX - box.left) / box.width) * width : 0, width, event.clientY - box.top)
  }
  const clear = () => {
    setCursor(-1)
    setAnchor(undefined)
    drag.current = undefined
  }
  const at = Math.min(cursor, places - 1)
  const span = anchor === undefined || at < 0 ? undefined : ordered(Math.min(anchor, places - 1), at)
  const finish = () => {
    if (span && onSelect) onSelect(...span)
    clear()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && anchor !== undefined) {
      event.stopPropagation()
      setAnchor(undefined)
      return
    }
    const next = moveCursor(event.key, at < 0 ? places : at, places)
    if (next === undefined || places === 0) return
    event.preventDefault()
    if (onSelect && event.shiftKey) setAnchor(anchor ?? (at < 0 ? next : at))
    else setAnchor(undefined)
    setCursor(next)
  }
  const onPointerDown = (event: PointerEvent<HTMLElement>) => {
    if (!onSelect || event.button !== 0 || event.pointerType === 'touch') return
    const place = under(event)
    if (place >= 0) drag.current = { x: event.clientX, place, moved: false }
  }
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    const place = under(event)
    const begun = drag.current
    if (begun && Math.abs(event.clientX - begun.x) >= CLICK_PX && !begun.moved) {
      begun.moved = true
      event.currentTarget.setPointerCapture?.(event.pointerId)
      setAnchor(begun.place)
    }
    // Beyond the edge a drag goes on to the last place.
    if (place >= 0 || !begun?.moved) setCursor(place)
  }
  const onClick = (event: MouseEvent<HTMLElement>) => {
    if (drag.current?.moved || (event.detail === 0 && span)) return finish()
    drag.current = undefined
    // A click of the keyboard has no place.
    const place = event.detail === 0 ? at : under(event)
    if (place >= 0) onOpen?.(place)
  }
  const onPointerLeave = () => {
    if (!drag.current?.moved) clear()
  }
  const onFocus = (event: { currentTarget: HTMLElement }) => {
    if (event.currentTarget.matches(':focus-visible')) setCursor(places - 1)
  }
  return { at, span, on: { onKeyDown, onPointerDown, onPointerMove, onClick, onPointerLeave, onFocus, onBlur: clear } }
}

export function Plot(props: PlotProps) {
  const { t } = useTranslation()
  const { box, width } = useWidth()
  const { at, span, on } = useCursor(props, width)
  const { label, height, readout, onSelect, onOpen, notes, legend, table } = props
  const help = onSelect ? t('charts.helpSelect') : onOpen ? t('charts.helpOpen') : t('charts.help')
  const said = span ? t('charts.span', { from: readout(span[0]), to: readout(span[1]) }) : at >= 0 ? readout(at) : ''
  return (
    <div className="plot" ref={box}>
      <div className="plot-drawing">
        <svg aria-hidden="true" width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
          {props.draw(width, at, span)}
        </svg>
        {/* Above the drawing, since the labels of an axis are no name of a button. */}
        <button type="button" className={`plot-target${onOpen || onSelect ? ' opens' : ''}`} aria-label={`${label}. ${help}`} {...on} />
      </div>
      <p className="plot-readout" aria-live="polite">
        {said}
      </p>
      {!said && <p className="plot-help">{help}</p>}
      <ul className="legend">
        {legend}
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
      <AsTable name={label} table={table} />
    </div>
  )
}
