// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { alertApi } from '../src/areas/alerts/alerts'
import { queryClient } from '../src/api/queries'
import { en } from '../src/i18n/en'
import { IncidentsTab } from '../src/areas/alerts/IncidentsPage'

const address = vi.hoisted(() => ({ search: {} as object, go: (_: unknown) => {} }))
vi.mock('@tanstack/react-router', async (original) => ({ ...(await original<object>()), useNavigate: () => (to: unknown) => address.go(to), useSearch: () => address.search }))

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  vi.stubGlobal('fetch', () => new Promise(() => {}))
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(cleanup)

// Without a state the list is that of what is not over: a filter too.
it.each([{ state: 'resolved' }, { executorId: '7' }])('clearing the filters %o of a list without rows leads to all incidents', async (search) => {
  vi.spyOn(alertApi, 'incidents').mockResolvedValue({ items: [], nextCursor: null } as never)
  const went = vi.fn()
  Object.assign(address, { search, go: went })
  render(
    <QueryClientProvider client={queryClient}>
      <I18nextProvider i18n={i18next}>
        <IncidentsTab />
      </I18nextProvider>
    </QueryClientProvider>,
  )
  fireEvent.click(await screen.findByRole('button', { name: 'Clear filters' }))
  expect(went).toHaveBeenCalledWith({ to: '/alerts', search: { state: 'all' } })
})
