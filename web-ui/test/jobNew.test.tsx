// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { http } from '../src/api/client'
import { queryClient } from '../src/api/queries'
import { en } from '../src/i18n/en'
import { JobNewPage } from '../src/areas/jobs/form/JobEditPage'

vi.mock('@tanstack/react-router', async (original) => ({
  ...(await original<object>()),
  Link: ({ children }: { children: ReactNode }) => <a href="#link">{children}</a>,
  useNavigate: () => () => {},
  useSearch: () => ({}),
  useBlocker: () => ({ status: 'idle' }),
}))
vi.mock('../src/ui/hooks', async (original) => ({ ...(await original<object>()), useCan: () => true }))

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  vi.stubGlobal('fetch', () => new Promise(() => {}))
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(cleanup)

const SERIAL = 'Wait for it'
const PARALLEL = 'Run side by side'
const blocking = () => screen.getByLabelText('When the last run still goes on').closest('.ant-select')?.textContent
const schedule = (kind: string) => fireEvent.click(screen.getByLabelText(kind, { selector: 'input[type=radio]' }))

const show = () =>
  render(
    <I18nextProvider i18n={i18next}>
      <>
        <QueryClientProvider client={queryClient}>
          <JobNewPage />
        </QueryClientProvider>
      </>
    </I18nextProvider>,
  )

it('runs of a new job without a recurring schedule start side by side, until somebody says otherwise', async () => {
  show()
  expect(blocking()).toBe(SERIAL)
  for (const [kind, want] of [['On demand', PARALLEL], ['Fixed rate', SERIAL], ['Once', PARALLEL], ['Cron', SERIAL]] as const) {
    schedule(kind)
    expect(blocking(), kind).toBe(want)
  }
  fireEvent.mouseDown(screen.getByLabelText('When the last run still goes on'))
  fireEvent.click(await screen.findByTitle('Discard the new run'))
  schedule('On demand')
  expect(blocking()).toBe('Discard the new run')
})

it('says at its field what it does not take, and changes nothing of what was typed', async () => {
  show()
  const type = (label: string, value: string) => {
    const field = screen.getByLabelText<HTMLInputElement>(label)
    fireEvent.change(field, { target: { value } })
    fireEvent.blur(field)
    return field
  }
  const name = type('Name', 'n'.repeat(200))
  await screen.findByText('At most 128 characters')
  expect(name.value).toHaveLength(200)
  type('Name', 'n'.repeat(128))
  await waitFor(() => expect(screen.queryByText('At most 128 characters')).toBeNull())
  for (const [wrong, right] of [['1000', '100'], ['0', '1']] as const) {
    const attempts = type('Attempts', wrong)
    await screen.findByText('From 1 to 100')
    expect(attempts.value).toBe(wrong)
    type('Attempts', right)
    await waitFor(() => expect(screen.queryByText('From 1 to 100')).toBeNull())
  }
  type('Owner e-mail', 'nobody')
  await screen.findByText('Not an e-mail address: nobody')
})

it('says that nobody would be told, until somebody is named', async () => {
  vi.spyOn(http, 'GET').mockImplementation(((path: string) =>
    Promise.resolve({ data: path.endsWith('/alert-settings') ? { reachesNobody: true, defaultChannelIds: [] } : { items: [], nextCursor: null }, response: new Response() })) as never)
  show()
  await screen.findByText(/^Nobody will be told/)
  fireEvent.change(screen.getByLabelText('Owner e-mail'), { target: { value: 'ann@example.com' } })
  await waitFor(() => expect(screen.queryByText(/^Nobody will be told/)).toBeNull())
})
