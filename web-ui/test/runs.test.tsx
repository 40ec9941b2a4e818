// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { api } from '../src/api/endpoints'
import { queryClient } from '../src/api/queries'
import type { Run, RunDetail } from '../src/api/types'
import { en } from '../src/i18n/en'
import { maskText } from '../src/areas/jobs/JobErrors'
import { withoutError } from '../src/areas/runs/explain'
import { RunErrors, RunSnoozes } from '../src/areas/runs/RunPage'
import { RunFilters } from '../src/areas/runs/RunFilters'
import { RunTable } from '../src/areas/runs/RunTable'

vi.mock('@tanstack/react-router', async (original) => ({ ...(await original<object>()), Link: ({ children }: { children: ReactNode }) => <a href="#link">{children}</a> }))

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
beforeEach(() => queryClient.clear())
afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
})

const run = (id: string, fireAt: string) => ({
  id, jobId: id, jobName: `job-${id}`, state: 'succeeded', fireAt, cause: 'schedule', latenessMs: 1, durationMs: 1, attempt: 1, maxAttempts: 1, executor: { id: '1', name: 'x' },
}) as unknown as Run

function show(search: { jobId?: string }, items: Run[], nextCursor: string | null) {
  vi.spyOn(api, 'runs').mockResolvedValue({ items, nextCursor } as never)
  render(
    <QueryClientProvider client={queryClient}>
      <I18nextProvider i18n={i18next}>
        <>
          <RunTable search={search} onChange={() => {}} />
        </>
      </I18nextProvider>
    </QueryClientProvider>,
  )
}

describe('RunTable', () => {
  const written = [run('4', '2026-11-22T10:00:00.000Z'), run('3', '2020-01-01T00:00:00.000Z'), run('2', '2026-11-22T11:00:00.000Z'), run('1', '2026-11-22T10:00:00Z')]

  it('shows a page by fire time, newest first, equal times as the server has them, and says so', async () => {
    show({}, written, 'next')
    await screen.findByText('job-1')
    const rows = screen.getAllByRole('row').slice(1)
    expect(rows.map((row) => /job-\d/.exec(row.textContent ?? '')?.[0])).toEqual(['job-2', 'job-4', 'job-1', 'job-3'])
    expect(screen.getByRole('columnheader', { name: 'Fire time' }).getAttribute('aria-sort')).toBe('descending')
    expect(screen.getByText('Each page by fire time; the pages by when their runs were written.')).toBeTruthy()
  })

  it('says nothing of pages where there is one, and of one job, whose pages go by fire time too', async () => {
    show({}, written, null)
    await screen.findByText('job-1')
    expect(screen.queryByText(/Each page by fire time/)).toBeNull()
    cleanup()
    queryClient.clear()
    show({ jobId: '1' }, written, 'next')
    await screen.findByText('job-1')
    expect(screen.queryByText(/Each page by fire time/)).toBeNull()
  })
})

describe('RunFilters', () => {
  it('names the instance of its filter, by a run of it', async () => {
    vi.spyOn(api, 'runs').mockResolvedValue({ items: [{ ...run('1', '2026-11-22T10:00:00Z'), instance: { id: '77', name: 'shop-1' } }], nextCursor: null } as never)
    render(
      <QueryClientProvider client={queryClient}>
        <I18nextProvider i18n={i18next}>
          <>
            <RunFilters search={{ instanceId: '77' }} onChange={() => {}} jobId="1" />
          </>
        </I18nextProvider>
      </QueryClientProvider>,
    )
    expect(await screen.findByText('Only instance shop-1', { exact: false })).toBeTruthy()
  })
})

describe('a run whose handler asked for it again later', () => {
  const attempt = (number: number, errorKind: string, error: string) => ({ number, fence: number, state: errorKind === 'snoozed' ? 'cancelled' : 'failed', errorKind, error, instance: { id: '7', name: 'shop-1' } })
  const detail = (attempts: object[], more: object = {}) => ({ ...run('1', '2026-11-22T10:00:00Z'), attempts, ...more }) as unknown as RunDetail
  const page = (of: RunDetail) =>
    render(
      <I18nextProvider i18n={i18next}>
        <>
          <RunErrors run={of} />
          <RunSnoozes run={of} />
        </>
      </I18nextProvider>,
    )

  it('has no error, and says what it was', () => {
    page(detail([attempt(1, 'snoozed', 'snoozed for 5s')]))
    expect(screen.queryByText('Error')).toBeNull()
    expect(screen.getByRole('heading', { name: 'Asked for again later' })).toBeTruthy()
    expect(screen.getByText('snoozed for 5s')).toBeTruthy()
  })

  it('has none while it waits', () => {
    page(detail([], { state: 'retry_wait', reason: 'snoozed', error: 'snoozed for 5s', errorKind: '' }))
    expect(screen.queryByText('Error')).toBeNull()
  })

  it('has the errors of other attempts', () => {
    page(detail([attempt(1, 'snoozed', 'snoozed for 5s'), attempt(2, 'error', 'the bank said no')]))
    expect(screen.getByRole('heading', { name: 'Error' })).toBeTruthy()
    expect(screen.getByText('the bank said no')).toBeTruthy()
  })

  it('names no kind of an error, and says where no attempt is left', () => {
    page(detail([attempt(1, 'retryable', 'the bank said no')]))
    expect(screen.getByText('not retried: 1 attempt')).toBeTruthy()
    expect(document.body.textContent).not.toContain('retryable')
  })

  it('has a sentence without the error, which stands below it', () => {
    expect(withoutError('The handler failed: no route to bank. It is not retried.', 'no route to bank')).toBe('The handler failed. It is not retried.')
    expect(withoutError('no route to bank. It ended as failed.', 'no route to bank')).toBe('It ended as failed.')
    expect(withoutError('It ran well.', '')).toBe('It ran well.')
    expect(maskText('error handler_failed: no route to #')).toBe('no route to #')
    expect(maskText('no route to #')).toBe('no route to #')
  })
})
