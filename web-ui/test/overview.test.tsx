// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen, waitFor } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { api } from '../src/api/endpoints'
import { http } from '../src/api/client'
import { queryClient } from '../src/api/queries'
import { NoticesHolder } from '../src/shell/NoticesHolder'
import { en } from '../src/i18n/en'
import { LoginPage } from '../src/areas/login/LoginPage'
import { OverviewPage } from '../src/areas/overview/OverviewPage'

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

const endings = (failed: number) => ({ at: '2026-11-26T10:00:00Z', runs: 3, succeeded: 3, failed, timedOut: 0, lost: 0, cancelled: 0, missed: 0, discarded: 0, excluded: 0, lateness: null, duration: null })

it.each([0, 2])('the overview says which runs it counts, and leads to failed ones of timers (%d failed)', async (failed) => {
  vi.spyOn(api, 'overview').mockResolvedValue({ runs24h: { succeeded: 1, failed: 0, timedOut: 0, lost: 0, missed: 0, excluded: 0, running: 0, due: 0 }, jobs: { enabled: 1, paused: 0 }, executors: { online: 1, offline: 0 }, nextFires: [], attention: [] } as never)
  vi.spyOn(http, 'GET').mockImplementation(((path: string) => Promise.resolve({ data: path.endsWith('/statistics') ? { from: '2026-11-26T10:00:00Z', to: '2026-11-26T11:00:00Z', step: 'hour', items: [endings(failed)], total: endings(failed) } : { items: [] }, response: new Response() })) as never)
  show(<OverviewPage />)
  await waitFor(() => expect(screen.getByText((text) => text.startsWith(en.overview.chartCounts))).toBeTruthy())
  expect(screen.getByText((text) => text.startsWith(en.overview.tilesCount))).toBeTruthy()
  const link = screen.queryByText(en.overview.failedTimers)?.getAttribute('href')
  expect(link).toBe(failed ? '#cause=timer&state=failed%2Ctimed_out%2Clost&range=24h' : undefined)
})

it('the page to sign in begins in its first field', () => {
  show(<LoginPage />)
  expect(document.activeElement).toBe(screen.getByLabelText('User name'))
})
