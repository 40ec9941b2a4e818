// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { http } from '../src/api/client'
import { queryClient } from '../src/api/queries'
import DeletedExecutors from '../src/areas/executors/DeletedExecutors'
import DeletedJobs from '../src/areas/jobs/change/DeletedJobs'
import { en } from '../src/i18n/en'
import { jobsSearch } from '../src/lib/search'
import { NoticesHolder } from '../src/shell/NoticesHolder'

const navigate = vi.fn()
let role = 'editor'
vi.mock('@tanstack/react-router', async (original) => ({ ...(await original<object>()), useNavigate: () => navigate }))
vi.mock('../src/ui/hooks', async (original) => ({ ...(await original<object>()), useCan: (needed: string) => needed === role }))

const deletedAt = '2026-11-30T10:00:00Z'
let jobs: object[] = []
const post = vi.fn()

beforeAll(async () => {
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
beforeEach(() => {
  role = 'editor'
  jobs = [{ id: '7', name: 'nightly', executor: 'shop', version: 3, deletedAt, deletedBy: 'ann' }]
  const lists: Record<string, () => object[]> = { '/api/v1/deleted-jobs': () => jobs, '/api/v1/deleted-executors': () => [{ id: '9', name: 'bank', version: 1, deletedAt }] }
  vi.spyOn(http, 'GET').mockImplementation(((path: string) => Promise.resolve({ data: { items: lists[path]!(), nextCursor: null }, response: new Response() })) as never)
  vi.spyOn(http, 'POST').mockImplementation(post as never)
})
afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
  vi.clearAllMocks()
  queryClient.clear()
})

const show = (page: React.ReactNode) =>
  render(
    <QueryClientProvider client={queryClient}>
      <I18nextProvider i18n={i18next}>
        <>
          {page}
          <NoticesHolder />
        </>
      </I18nextProvider>
    </QueryClientProvider>,
  )
const page = { cursor: undefined, onGo: () => {} }

it('a deleted job is restored by its id, leaves the list, and the notice leads to it', async () => {
  post.mockImplementation(() => {
    jobs = []
    return Promise.resolve({ data: {}, response: new Response() })
  })
  show(<DeletedJobs {...page} />)
  const row = (await screen.findByText('nightly')).closest('tr')!
  expect(row.textContent).toMatch(/shop.*ann · /)
  fireEvent.click(screen.getByRole('button', { name: 'Restore: nightly' }))
  const link = await screen.findByRole('link', { name: 'Open it' })
  expect(post).toHaveBeenCalledExactlyOnceWith('/api/v1/jobs/{id}/restore', { params: { path: { id: '7' } } })
  await screen.findByText('No job was deleted in the last 30 days')
  expect(link.getAttribute('href')).toBe('/jobs/7')
  fireEvent.click(link)
  expect(navigate).toHaveBeenCalledExactlyOnceWith({ to: '/jobs/$jobId', params: { jobId: '7' } })
})
it('a refusal is shown, and the job stays', async () => {
  post.mockResolvedValue({ error: { code: 'conflict', detail: 'another job has the name nightly' }, response: new Response(null, { status: 409 }) })
  show(<DeletedJobs {...page} />)
  fireEvent.click(await screen.findByRole('button', { name: 'Restore: nightly' }))
  await screen.findByText(/another job has the name nightly/)
  expect(screen.getByRole('button', { name: 'Restore: nightly' })).toBeTruthy()
})
it('a viewer sees what was deleted, and no button', async () => {
  role = 'viewer'
  show(<DeletedExecutors {...page} />)
  await screen.findByText('bank')
  expect(screen.queryByRole('button', { name: /Restore/ })).toBeNull()
})
it('the address says that the list has deleted jobs', () => {
  expect(jobsSearch({ deleted: '1', q: 'x' })).toEqual({ deleted: '1', q: 'x' })
  expect(jobsSearch({ deleted: 'yes' })).toEqual({})
})
