// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ApiError } from '../src/api/problem'
import { Filters, type FilterChip } from '../src/ui/Filters'
import { Pager, ResourceTable } from '../src/ui/ResourceTable'
import { en } from '../src/i18n/en'

beforeAll(async () => {
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(cleanup)

interface Row {
  id: string
  name: string
}

const base = {
  label: 'Things',
  columns: [{ key: 'name', title: 'Name', render: (row: Row) => row.name }],
  rowKey: (row: Row) => row.id,
  empty: <p>No thing yet</p>,
}
const show = (more: Partial<Parameters<typeof ResourceTable<Row>>[0]>) =>
  render(
    <I18nextProvider i18n={i18next}>
      <>
        <ResourceTable<Row> {...base} rows={undefined} {...more} />
      </>
    </I18nextProvider>,
  )

describe('ResourceTable', () => {
  it('shows rows, each cell with its label for the card form', () => {
    show({ rows: [{ id: '1', name: 'first' }] })
    expect(screen.getByRole('cell', { name: 'first' }).getAttribute('data-label')).toBe('Name')
  })

  it('says that it is loading', () => {
    show({})
    expect(screen.getByRole('table').getAttribute('aria-busy')).toBe('true')
    expect(screen.getByText('Loading…')).toBeTruthy()
  })

  it('follows the link of a row after a click anywhere in it, but not for its other links or a selection', () => {
    const followed = vi.fn((event: Event) => event.preventDefault())
    const other = vi.fn((event: Event) => event.preventDefault())
    const columns = [
      { key: 'name', title: 'Name', kind: 'title' as const, render: (row: Row) => <a href="#thing" ref={(a) => a?.addEventListener('click', followed)}>{row.name}</a> },
      { key: 'note', title: 'Note', render: () => <span>a note</span> },
      { key: 'other', title: 'Other', render: () => <a href="#other" ref={(a) => a?.addEventListener('click', other)}>other</a> },
    ]
    show({ columns, rows: [{ id: '1', name: 'first' }], opens: true })
    fireEvent.click(screen.getByText('a note'), { ctrlKey: true })
    expect(followed).toHaveBeenCalledOnce()
    expect(followed).toHaveBeenCalledWith(expect.objectContaining({ ctrlKey: true }))
    fireEvent.click(screen.getByText('first'))
    expect(followed).toHaveBeenCalledTimes(2)
    fireEvent.click(screen.getByText('other'))
    expect(other).toHaveBeenCalledOnce()
    getSelection()?.selectAllChildren(screen.getByText('a note'))
    fireEvent.click(screen.getByText('a note'))
    expect(followed).toHaveBeenCalledTimes(2)
    getSelection()?.removeAllRanges()
  })

  it('teaches when it is new and empty, and offers to clear filters when it is filtered', () => {
    show({ rows: [] })
    expect(screen.getByText('No thing yet')).toBeTruthy()
    cleanup()
    const onClearFilters = vi.fn()
    show({ rows: [], filtered: true, onClearFilters })
    fireEvent.click(screen.getByRole('button', { name: 'Clear filters' }))
    expect(onClearFilters).toHaveBeenCalledOnce()
  })

  it('keeps the way to the next page when this one has no row', () => {
    for (const filtered of [false, true]) {
      const onGo = vi.fn()
      show({ rows: [], filtered, pager: <Pager cursor={undefined} nextCursor="page2" onGo={onGo} /> })
      fireEvent.click(screen.getByRole('button', { name: 'Next' }))
      expect(onGo).toHaveBeenCalledWith('page2')
      cleanup()
    }
  })

  it('shows an error by its code, with the request id and a way to try again', () => {
    const onRetry = vi.fn()
    show({ error: new ApiError({ status: 503, code: 'unavailable', instance: 'req_7' }), onRetry })
    expect(screen.getByRole('alert').textContent).toContain('The server is not ready to answer.')
    expect(screen.getByText('req_7')).toBeTruthy()
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }))
    expect(onRetry).toHaveBeenCalledOnce()
  })

  it('keeps old rows when a refresh fails, and says so', () => {
    show({ rows: [{ id: '1', name: 'first' }], error: new ApiError({ status: 0, code: 'network' }), updatedAt: 1 })
    expect(screen.getByText('first')).toBeTruthy()
    expect(screen.getByRole('status').textContent).toContain('the last refresh failed')
  })
})

describe('Filters', () => {
  const filters = (chips: FilterChip[]) =>
    render(
      <I18nextProvider i18n={i18next}>
        <Filters label="Things" chips={chips} onClear={vi.fn()} />
      </I18nextProvider>,
    )

  it('keep the place of the button that clears them', () => {
    vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: vi.fn(), removeEventListener: vi.fn() }))
    const { container } = filters([])
    expect(screen.queryByRole('button')).toBeNull()
    expect(container.querySelector('.chips.rests')?.textContent).toBe('Clear filters')
    cleanup()
    filters([{ key: 'state', text: 'Failing', onRemove: vi.fn() }])
    expect(screen.getByRole('button', { name: 'Clear filters' })).toBeTruthy()
    vi.unstubAllGlobals()
  })
})

describe('Pager', () => {
  const pager = (cursor: string | undefined, nextCursor: string | null, onGo = vi.fn()) => {
    render(
      <I18nextProvider i18n={i18next}>
        <Pager cursor={cursor} nextCursor={nextCursor} onGo={onGo} />
      </I18nextProvider>,
    )
    return onGo
  }

  it('is absent when there is one page only', () => {
    pager(undefined, null)
    expect(screen.queryByRole('button')).toBeNull()
  })

  it('remembers the way back', () => {
    const forth = pager(undefined, 'page2')
    fireEvent.click(screen.getByRole('button', { name: 'Next' }))
    expect(forth).toHaveBeenCalledWith('page2')
    cleanup()
    const back = pager('page2', null)
    fireEvent.click(screen.getByRole('button', { name: 'Previous' }))
    expect(back).toHaveBeenCalledWith(undefined)
  })

  it('offers the first page where the way back is not known', () => {
    pager('from-a-link', null)
    expect((screen.getByRole('button', { name: 'Previous' }) as HTMLButtonElement).disabled).toBe(true)
    expect(screen.getByRole('button', { name: 'First page' })).toBeTruthy()
  })
})
