// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { timerApi } from '../src/areas/timers/timers'
import { queryClient } from '../src/api/queries'
import type { Timer } from '../src/api/types'
import { NoticesHolder } from '../src/shell/NoticesHolder'
import { en } from '../src/i18n/en'
import { TimersPage } from '../src/areas/timers/TimersPage'

const navigate = vi.fn<(to: object) => void>()
let search = {}

vi.mock('@tanstack/react-router', async (original) => ({
  ...(await original<object>()),
  Link: ({ children, search }: { children: ReactNode; search?: object }) => <a href={`#${new URLSearchParams(search as Record<string, string>).toString()}`}>{children}</a>,
  useNavigate: () => navigate,
  useRouter: () => ({}),
  useSearch: () => search,
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

const timer = (state: Timer['state'], fireAt: string): Timer => ({
  executor: 'shop', handler: 'cancel-unpaid', key: `order/${state}`, state, run: `1${state}`, fireAt, createdAt: '2026-11-01T00:00:00Z', createdBy: 'kim', reason: '', labels: [], note: '', input: null, error: '', message: '',
}) as unknown as Timer
const given = (items: Timer[]) => {
  vi.spyOn(timerApi, 'timers').mockResolvedValue({ items, nextCursor: null } as never)
  vi.spyOn(timerApi, 'timerCount').mockResolvedValue({ pending: 0, byHandler: [] } as never)
}
const inTwoHours = () => new Date(Date.now() + 7_230_000).toISOString()

it('a timer that was cancelled has no countdown any more', async () => {
  search = { state: 'ended' }
  given([timer('cancelled', inTwoHours()), timer('succeeded', '2026-11-01T00:01:00Z')])
  show(<TimersPage />)
  const cells = (key: string) => screen.getByRole('button', { name: key }).closest('tr')!.textContent
  await screen.findByText('order/cancelled')
  expect(cells('order/cancelled')).toMatch(/Was to fire: \d{4}-/)
  expect(cells('order/cancelled')).not.toMatch(/in 2 h/)
  expect(cells('order/succeeded')).toMatch(/ago/)
  fireEvent.click(screen.getByRole('button', { name: 'order/cancelled' }))
  const dialog = await screen.findByRole('dialog')
  expect(dialog.textContent).toContain('Was to fire')
  expect(dialog.textContent).not.toContain('Fires')
})

it('a pending one has', async () => {
  search = {}
  given([timer('pending', inTwoHours())])
  show(<TimersPage />)
  await waitFor(() => expect(screen.getByText('order/pending').closest('tr')!.textContent).toMatch(/in 2 h/))
})

it('a search without a match names the list that it was in, and leads to the others', async () => {
  search = { keyPrefix: 'order/77' }
  given([])
  show(<TimersPage />)
  await screen.findByText('Nothing matches in the list “Pending”')
  fireEvent.click(screen.getByRole('button', { name: 'Search in “Ended”' }))
  expect(navigate).toHaveBeenLastCalledWith({ to: '/timers', search: { keyPrefix: 'order/77', cursor: undefined, state: 'ended' } })
})
