// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { api } from '../src/api/endpoints'
import { ApiError } from '../src/api/problem'
import { queryClient } from '../src/api/queries'
import type { Job } from '../src/api/types'
import RunNowDialog from '../src/areas/jobs/RunNowDialog'
import { NoticesHolder } from '../src/shell/NoticesHolder'
import { en } from '../src/i18n/en'
import { writeJson } from '../src/lib/json'

vi.mock('@tanstack/react-router', async (original) => ({
  ...(await original<object>()),
  Link: ({ children, search }: { children: ReactNode; search?: object }) => <a href={`#${new URLSearchParams(search as Record<string, string>).toString()}`}>{children}</a>,
  useNavigate: () => () => {},
  useRouter: () => ({}),
  useSearch: () => ({}),
}))
vi.mock('../src/ui/hooks', async (original) => ({ ...(await original<object>()), useCan: () => true }))

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
  queryClient.clear()
})

const show = (page: ReactNode) =>
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

const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
const job = { id: '1', name: 'greet', executor: { id: '7', name: 'first' }, handler: 'greet', input: { name: 'ann' }, dispatchTimeout: '5m' } as unknown as Job

it('a required text that was emptied is missing, which is said at its field', async () => {
  vi.spyOn(api, 'job').mockResolvedValue(job)
  vi.spyOn(api, 'instances').mockResolvedValue({ items: [], nextCursor: null } as never)
  vi.spyOn(api, 'executor').mockResolvedValue({ id: '7', handlers: [{ name: 'greet', inputSchema: schema }] } as never)
  const run = vi.spyOn(api, 'runJob').mockRejectedValue(new ApiError({ status: 422, code: 'unfit_input', errors: [{ location: 'body.input.name', pointer: '/name', message: 'is missing' }] }))
  show(<RunNowDialog job={job} onClose={() => {}} />)
  const dialog = within(await screen.findByRole('dialog'))
  const field = await dialog.findByLabelText<HTMLInputElement>('name')
  await waitFor(() => expect(field.value).toBe('ann'))
  fireEvent.change(field, { target: { value: '' } })
  fireEvent.click(dialog.getByRole('button', { name: en.jobs.run.submit }))
  await waitFor(() => expect(run).toHaveBeenCalled())
  expect(writeJson(run.mock.calls[0]?.[1].input)).toBe('{}')
  await dialog.findByText('is missing')
})
