// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import i18next from 'i18next'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { accessApi } from '../src/areas/access/access'
import { limitApi } from '../src/areas/executors/limits'
import { ApiError } from '../src/api/problem'
import { queryClient } from '../src/api/queries'
import type { Tenant } from '../src/api/types'
import { NoticesHolder } from '../src/shell/NoticesHolder'
import { en } from '../src/i18n/en'
import { TenantsPage } from '../src/areas/access/TenantsPage'

vi.mock('@tanstack/react-router', async (original) => ({ ...(await original<object>()), useNavigate: () => () => {}, useSearch: () => ({}) }))
vi.mock('../src/ui/hooks', async (original) => ({ ...(await original<object>()), useSession: () => ({ tenant: { id: '1' } }) }))

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

const tenant = (id: string, name: string, state: Tenant['state'], more: Partial<Tenant> = {}): Tenant => ({ id, name, state, version: 4, createdAt: '2026-11-01T00:00:00Z', deleteAt: null, ...more })
const TENANTS = [
  tenant('1', 'home', 'enabled'),
  tenant('2', 'acme', 'enabled'),
  tenant('3', 'beta', 'disabled', { note: 'unpaid' }),
  tenant('4', 'gone', 'deleted', { deleteAt: '2027-01-01T00:00:00Z' }),
  tenant('5', 'away', 'moved', { cell: 'eu2' }),
]

async function show() {
  vi.spyOn(accessApi, 'tenants').mockResolvedValue({ items: TENANTS, nextCursor: null } as never)
  render(
    <QueryClientProvider client={queryClient}>
      <I18nextProvider i18n={i18next}>
        <TenantsPage />
        <NoticesHolder />
      </I18nextProvider>
    </QueryClientProvider>,
  )
  await screen.findByText('acme')
}
// An icon may stand before the text.
const press = (text: string) => fireEvent.click(screen.getByRole('button', { name: new RegExp(`${text}$`) }))

describe('TenantsPage', () => {
  it('offers what each state allows, and nothing that shuts the tenant one works in', async () => {
    await show()
    const offers = Object.fromEntries(
      TENANTS.map(({ name }) => [name, screen.getAllByRole('button').map((one) => one.getAttribute('aria-label') ?? '').filter((text) => text.endsWith(`: ${name}`)).map((text) => text.split(':')[0])]),
    )
    expect(offers).toEqual({
      home: ['Quotas', 'Rename'],
      acme: ['Quotas', 'Switch', 'Rename', 'Disable'],
      beta: ['Quotas', 'Switch', 'Rename', 'Enable', 'Delete'],
      gone: ['Quotas', 'Restore'],
      away: ['Quotas'],
    })
    for (const text of ['unpaid', 'cell eu2']) expect(screen.getByText(text)).toBeTruthy()
  })

  it('tells at the field what is wrong with a name, then how the first administrator comes in', async () => {
    const create = vi.spyOn(accessApi, 'createTenant').mockRejectedValueOnce(new ApiError({ status: 409, code: 'conflict' })).mockResolvedValue(tenant('6', 'delta', 'enabled'))
    await show()
    press('New tenant')
    const dialog = within(await screen.findByRole('dialog'))
    const name = (text: string) => {
      fireEvent.change(dialog.getByLabelText('Name'), { target: { value: text } })
      fireEvent.click(dialog.getByRole('button', { name: 'Create' }))
    }
    name('9 lives')
    await dialog.findByText(/beginning with a letter, not ending/)
    expect(create).not.toHaveBeenCalled()
    name('acme')
    await dialog.findByText('Another tenant has this name.')
    name('delta')
    await screen.findByText(/Nobody belongs to it yet/)
  })

  it('deletes only by the name, with the grace that was chosen', async () => {
    vi.spyOn(limitApi, 'quotas').mockResolvedValue({ items: [{ kind: 'jobs', used: 1204, limit: 0, default: true }, { kind: 'fires_per_minute', used: 7, limit: 0, default: true }], nextCursor: null } as never)
    const remove = vi.spyOn(accessApi, 'deleteTenant').mockResolvedValue(TENANTS[3]!)
    await show()
    press('Delete: beta')
    const dialog = within(await screen.findByRole('dialog'))
    expect((await dialog.findByText(/^Jobs:/)).textContent).toBe('Jobs: 1,204')
    expect(dialog.queryByText(/Fires per minute/)).toBeNull()
    const confirm = (text: string) => {
      fireEvent.change(dialog.getByLabelText('Its name, to confirm'), { target: { value: text } })
      fireEvent.click(dialog.getByRole('button', { name: 'Delete' }))
    }
    confirm('bet')
    await dialog.findByText('Type beta')
    expect(remove).not.toHaveBeenCalled()
    confirm('beta')
    await waitFor(() => expect(remove).toHaveBeenCalledWith(TENANTS[2], 'beta', '168h'))
    await screen.findByText('beta is deleted.')
  })
})
