// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { http } from '../src/api/client'
import { queryClient } from '../src/api/queries'
import type { Job } from '../src/api/types'
import { JobCounters } from '../src/areas/jobs/JobCounters'
import { filterOf, JobGroups } from '../src/areas/jobs/JobGroups'
import { sortable, weekColumns } from '../src/areas/jobs/weekColumns'
import { jobsSearch } from '../src/lib/search'
import { ResourceTable } from '../src/ui/ResourceTable'
import { en } from '../src/i18n/en'
import { zh } from '../src/i18n/zh'

const counts = { all: 10_000, failing: 12, late: 0, paused: 300, neverFires: 1, more: false, groups: [{ id: '7', name: 'shop', jobs: 9_000 }, { id: '8', name: 'bank', jobs: 1 }], moreGroups: false }
let asked: string[] = []

beforeAll(async () => {
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en }, zh: { translation: zh } }, interpolation: { escapeValue: false } })
})
beforeEach(() => {
  asked = []
  vi.spyOn(http, 'GET').mockImplementation(((path: string, init: { params?: { query?: Record<string, unknown> } }) => {
    asked.push(`${path} ${JSON.stringify(init.params?.query ?? {})}`)
    const data = path.endsWith('/counts') ? counts : { items: [], nextCursor: null }
    return Promise.resolve({ data, response: new Response() })
  }) as never)
})
afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
  queryClient.clear()
})

const show = (part: React.ReactNode) =>
  render(
    <QueryClientProvider client={queryClient}>
      <I18nextProvider i18n={i18next}>{part}</I18nextProvider>
    </QueryClientProvider>,
  )

describe('the counters', () => {
  it('are buttons that say which filter is on, and ask for the filter of the list', async () => {
    const [onState, onDeleted] = [vi.fn(), vi.fn()]
    show(<JobCounters query={{ q: 'pay' }} state="failing" onState={onState} deleted={false} onDeleted={onDeleted} />)
    const failing = await screen.findByRole('button', { name: 'Failing 12' })
    expect(failing.getAttribute('aria-pressed')).toBe('true')
    expect(screen.getByRole('button', { name: 'All 10,000' }).getAttribute('aria-pressed')).toBe('false')
    fireEvent.click(screen.getByRole('button', { name: 'Never fires 1' }))
    fireEvent.click(screen.getByRole('button', { name: 'All 10,000' }))
    expect(onState.mock.calls).toEqual([['never_fires'], [undefined]])
    fireEvent.click(screen.getByRole('button', { name: 'Deleted' }))
    expect(onDeleted).toHaveBeenCalledOnce()
    expect(asked).toEqual(['/api/v1/jobs/counts {"q":"pay"}'])
  })
})

describe('the groups', () => {
  it('come from the server, and an open one is a list with its filter', async () => {
    show(<JobGroups by="executor" query={{ state: 'failing', sort: 'p95', recent: 20 }} columns={weekColumns(i18next.t)} onClearFilters={vi.fn()} />)
    const shop = await screen.findByRole('button', { name: /shop.*9,000 jobs/ })
    expect(asked).toEqual(['/api/v1/jobs/counts {"state":"failing","groupBy":"executor","top":100}'])
    expect(shop.getAttribute('aria-expanded')).toBe('false')
    fireEvent.click(shop)
    expect(shop.getAttribute('aria-expanded')).toBe('true')
    expect(asked[1]).toBe('/api/v1/jobs {"state":"failing","sort":"p95","recent":20,"executorId":"7"}')
  })
  it('have exact filters', () => {
    const group = { name: 'ann ann@example.com', jobs: 1 }
    expect(filterOf('owner', group, { q: 'a' })).toEqual({ q: 'a', owner: '=ann ann@example.com' })
    expect(filterOf('label', { name: 'team=pay', jobs: 1 }, { label: 'env=prod' })).toEqual({ label: 'env=prod,team=pay' })
  })
})

describe('the orders', () => {
  it('are buttons in the header, which says the order', () => {
    const onSort = vi.fn()
    const columns = sortable([{ key: 'name', title: 'Name', render: (job: Job) => job.name }, ...weekColumns(i18next.t)], 'failures', onSort)
    const job = { id: '1', name: 'close', stats7d: { runs: 100, failed: 3, p50Ms: 10, p95Ms: 65_000, latenessP95Ms: null } } as unknown as Job
    show(<ResourceTable label="Jobs" columns={columns} rows={[job]} rowKey={(one) => one.id} empty="none" />)
    expect(screen.getByRole('columnheader', { name: 'Failed, 7 d' }).getAttribute('aria-sort')).toBe('descending')
    // The style sheets show the column of the order at every width.
    expect(screen.getByRole('cell', { name: '3 of 100' }).classList).toContain('sorted')
    expect(screen.getByRole('columnheader', { name: 'Failed, 7 d' }).classList).toContain('sorted')
    expect(screen.getByRole('columnheader', { name: 'Took, p95' }).classList).not.toContain('sorted')
    fireEvent.click(screen.getByRole('button', { name: 'Took, p95' }))
    fireEvent.click(screen.getByRole('button', { name: 'Name' }))
    expect(onSort.mock.calls).toEqual([['p95'], [undefined]])
  })
  it('stay in the address, and unknown ones are dropped', () => {
    expect(jobsSearch({ sort: 'lateness', state: 'never_fires', group: 'owner' })).toEqual({ sort: 'lateness', state: 'never_fires', group: 'owner' })
    expect(jobsSearch({ sort: 'id', state: 'x', group: 'y' })).toEqual({})
  })
})
