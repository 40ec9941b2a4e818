// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { accessApi } from '../src/areas/access/access'
import { api } from '../src/api/endpoints'
import { queryClient } from '../src/api/queries'
import { en } from '../src/i18n/en'
import { ApiKeysPage } from '../src/areas/access/ApiKeysPage'

vi.mock('@tanstack/react-router', async (original) => ({ ...(await original<object>()), Link: ({ children }: { children: ReactNode }) => <a href="#link">{children}</a> }))
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

it('a key with several roles is bound to executors, and to handlers only while it calls and sets timers', async () => {
  vi.spyOn(accessApi, 'apiKeys').mockResolvedValue({ items: [], nextCursor: null } as never)
  vi.spyOn(api, 'executors').mockResolvedValue({ items: [], nextCursor: null } as never)
  const create = vi.spyOn(accessApi, 'createApiKey').mockResolvedValue({ secret: 'ck_x' } as never)
  render(
    <QueryClientProvider client={queryClient}>
      <I18nextProvider i18n={i18next}>
        <ApiKeysPage />
      </I18nextProvider>
    </QueryClientProvider>,
  )
  fireEvent.click((await screen.findAllByRole('button', { name: /New API key$/ }))[0]!)
  const dialog = within(await screen.findByRole('dialog'))
  fireEvent.change(dialog.getByLabelText('Name'), { target: { value: 'app' } })
  expect(dialog.queryByLabelText(en.keys.targets)).toBeNull()
  fireEvent.mouseDown(dialog.getByLabelText('Role'))
  fireEvent.click(await screen.findByTitle(en.role.manager))
  fireEvent.click(screen.getAllByTitle(en.role.operator).at(-1)!) // takes it away
  fireEvent.click(await screen.findByTitle(en.role.caller))
  fireEvent.change(dialog.getByLabelText(en.bound.label), { target: { value: 'shop,' } })
  fireEvent.click(dialog.getByRole('button', { name: 'Create' }))
  await waitFor(() => expect(create).toHaveBeenCalledWith({ name: 'app', role: 'manager+caller', executors: ['shop'], expiresAt: expect.any(String) }))
})
