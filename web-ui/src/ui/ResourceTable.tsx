// A list of things: a real table on wide screens which turns into cards on
// narrow ones by CSS alone, so there is one DOM to read, test and link. The
// roles are spelled out because `display: block` takes them away in browsers.
import { HistoryOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import type { MouseEvent, ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { isApiError } from '../api/problem'
import { getConnection } from '../lib/connection'
import { formatWithZone } from '../lib/time'
import { ErrorState, FilteredBlank } from './States'

export interface Column<T> {
  key: string
  title: string
  render: (row: T) => ReactNode
  /** "title" heads the card on narrow screens; "actions" has no label there. */
  kind?: 'title' | 'actions'
  align?: 'right'
  /** The rows stand in the order of this column, the greatest first. */
  sorted?: 'ascending' | 'descending'
  /** Present: the title is a button that puts the rows into the order of this column. */
  onSort?: () => void
}

interface Props<T> {
  label: string
  columns: Column<T>[]
  rows: T[] | undefined
  rowKey: (row: T) => string
  error?: unknown
  onRetry?: () => void
  /** Shown when there is no row and no filter. */
  empty: ReactNode
  filtered?: boolean
  onClearFilters?: () => void
  pager?: ReactNode
  updatedAt?: number
  /** Rows of one line, 36 px high. Each column has a class col-KEY for its width. Actions have a column of their own, and appear on hover and focus. */
  dense?: boolean
  /** A click anywhere in a row follows the link in its title. */
  opens?: boolean
}

const SKELETON_ROWS = 6

export function ResourceTable<T>(props: Props<T>) {
  const { t } = useTranslation()
  const { rows, error, columns } = props
  if (!rows && error) return <ErrorState error={error} onRetry={props.onRetry} />
  if (rows?.length === 0) {
    // A page may have no row and yet a next one.
    return (
      <>
        {props.filtered ? <FilteredBlank onClear={props.onClearFilters} /> : props.empty}
        {props.pager}
      </>
    )
  }
  const stale = Boolean(rows && error)
  return (
    <>
      {stale && (
        <p className="banner small" role="status">
          <HistoryOutlined aria-hidden />
          {t('list.stale', { time: formatWithZone(props.updatedAt ?? getConnection().lastAnswerAt) })}
          {isApiError(error) && error.requestId ? ` (${error.requestId})` : ''}
        </p>
      )}
      <div className={`table-wrap${stale ? ' stale' : ''}`}>
        <table className={props.dense ? 'table dense' : 'table'} role="table" aria-label={props.label} aria-busy={!rows}>
          <thead role="rowgroup">
            <tr role="row">
              {columns.map((column) => (
                <th key={column.key} role="columnheader" scope="col" className={[`col-${column.key}`, column.align, column.sorted && 'sorted'].filter(Boolean).join(' ')} aria-sort={column.sorted}>
                  <Title column={column} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">{rows ? rows.map((row) => <Row key={props.rowKey(row)} row={row} columns={columns} opens={props.opens} />) : <SkeletonRows columns={columns} />}</tbody>
        </table>
      </div>
      {props.pager}
    </>
  )
}

function Title<T>({ column }: { column: Column<T> }) {
  if (column.kind === 'actions') return <span className="sr-only">{column.title}</span>
  const arrow = column.sorted && <span aria-hidden="true"> {column.sorted === 'ascending' ? '↑' : '↓'}</span>
  if (!column.onSort) {
    return (
      <>
        {column.title}
        {arrow}
      </>
    )
  }
  return (
    <button type="button" className="sort" onClick={column.onSort}>
      {column.title}
      {arrow}
    </button>
  )
}

function cellClass<T>(column: Column<T>): string {
  const names = [`col-${column.key}`, column.align, column.sorted && 'sorted', column.kind === 'title' && 'card-title', column.kind === 'actions' && 'actions']
  return names.filter(Boolean).join(' ')
}

/** What has an answer to a click of its own. */
const OWN = 'a, button, input, select, label, summary'

function openRow(event: MouseEvent<HTMLTableRowElement>) {
  const { target, currentTarget, ctrlKey, metaKey, shiftKey } = event
  // The end of a selection of text is no click on the row.
  if (!(target instanceof Element) || target.closest(OWN) || getSelection()?.isCollapsed === false) return
  // With its keys, so that it opens in a new tab where a person asks for one.
  currentTarget.querySelector('.card-title a')?.dispatchEvent(new window.MouseEvent('click', { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey }))
}

function Row<T>({ row, columns, opens }: { row: T; columns: Column<T>[]; opens?: boolean }) {
  return (
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions -- the link in its title is for the keyboard
    <tr role="row" className={opens ? 'opens' : undefined} onClick={opens ? openRow : undefined}>
      {columns.map((column) => (
        <td key={column.key} role="cell" data-label={column.title} className={cellClass(column)}>
          {column.render(row)}
        </td>
      ))}
    </tr>
  )
}

function SkeletonRows<T>({ columns }: { columns: Column<T>[] }) {
  const { t } = useTranslation()
  return (
    <>
      {Array.from({ length: SKELETON_ROWS }, (_, i) => (
        <tr key={i} role="row">
          {columns.map((column, j) => (
            <td key={column.key} role="cell" data-label={column.title} className={`${cellClass(column)} loading`}>
              <span className="skeleton">{i === 0 && j === 0 && <span className="sr-only">{t('list.loading')}</span>}</span>
            </td>
          ))}
        </tr>
      ))}
    </>
  )
}

// Cursors lead forward only. The way back is remembered here per cursor, for
// the life of the page; after a reload the browser's Back and "first page"
// remain.
const previousOf = new Map<string, string | undefined>()

interface PagerProps {
  cursor: string | undefined
  nextCursor: string | null | undefined
  onGo: (cursor: string | undefined) => void
  /** By what the pages follow each other, where that is not the order of their rows. */
  note?: string
}

export function Pager({ cursor, nextCursor, onGo, note }: PagerProps) {
  const { t } = useTranslation()
  if (!cursor && !nextCursor) return null
  const next = () => {
    if (!nextCursor) return
    previousOf.set(nextCursor, cursor)
    onGo(nextCursor)
  }
  return (
    <div className="pager">
      {note && <span className="muted small grow">{note}</span>}
      {cursor && <Button onClick={() => onGo(undefined)}>{t('list.first')}</Button>}
      <Button disabled={!cursor || !previousOf.has(cursor)} onClick={() => onGo(previousOf.get(cursor ?? ''))}>
        {t('list.previous')}
      </Button>
      <Button disabled={!nextCursor} onClick={next}>
        {t('list.next')}
      </Button>
    </div>
  )
}
