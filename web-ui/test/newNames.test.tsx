// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { accessApi } from '../src/areas/access/access'
import { api } from '../src/api/endpoints'
import { executorApi } from '../src/areas/executors/executors'
import { ApiError } from '../src/api/problem'
import { queryClient } from '../src/api/queries'
import { NoticesHolder } from '../src/shell/NoticesHolder'
import { en } from '../src/i18n/en'
import { ExecutorsPage } from '../src/areas/executors/ExecutorsPage'
import { UsersPage } from '../src/areas/access/UsersPage'

vi.mock('@tanstack/react-router', async (original) => ({
  ...(await original<object>()),
  Link: ({ children, search }: { children: ReactNode; search?: object }) => <a href={`#${new URLSearchParams(search as Record<string, string>).toString()}`}>{children}</a>,
  useNavigate: () => () => {},
  useRouter: () => ({}),
  useSearch: () => ({}),
}))
vi.mock('../src/ui/LinkButton', () => ({ LinkButton: ({ children }: { children: ReactNode }) => <a href="#instances">{children}</a> }))
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

const refusal = (location: string, message: string) => new ApiError({ status: 422, code: 'validation_failed', detail: `${location}: ${message}`, errors: [{ location, message }] })
const none = { items: [], nextCursor: null } as never

async function dialogOf(page: ReactNode, button: string, field: string) {
  show(page)
  fireEvent.click((await screen.findAllByRole('button', { name: new RegExp(`${button}$`) }))[0]!)
  const dialog = within(await screen.findByRole('dialog'))
  const send = (text: string) => {
    fireEvent.change(dialog.getByLabelText(field), { target: { value: text } })
    fireEvent.click(dialog.getByRole('button', { name: 'Create' }))
  }
  const says = (text: string) => waitFor(() => expect(dialog.queryAllByText(text, { selector: '.ant-form-item-explain-error' })).toHaveLength(1))
  return { send, says }
}

it('what is wrong with the name of a new executor stands at its field, and nowhere else', async () => {
  vi.spyOn(api, 'executors').mockResolvedValue(none)
  const create = vi
    .spyOn(executorApi, 'create')
    .mockRejectedValueOnce(new ApiError({ status: 409, code: 'conflict' }))
    .mockRejectedValueOnce(refusal('body.name', 'is the name of the admin nodes'))
  const { send, says } = await dialogOf(<ExecutorsPage />, 'New executor', 'Name')
  for (const bad of ['a b', '.a', 'n'.repeat(129)]) {
    send(bad)
    await says(en.executors.nameRule)
  }
  expect(create).not.toHaveBeenCalled()
  send(' Shop ')
  await says(en.executors.nameTaken)
  expect(create).toHaveBeenCalledWith({ name: 'Shop', description: undefined })
  send('carillon')
  await says('is the name of the admin nodes')
  expect(screen.queryByText(/body\.name/)).toBeNull()
})

it('what is wrong with a new user stands at its fields', async () => {
  vi.spyOn(accessApi, 'users').mockResolvedValue(none)
  vi.spyOn(accessApi, 'invitations').mockResolvedValue(none)
  vi.spyOn(api, 'executors').mockResolvedValue(none)
  const create = vi
    .spyOn(accessApi, 'createUser')
    .mockRejectedValueOnce(new ApiError({ status: 409, code: 'conflict' }))
    .mockRejectedValueOnce(refusal('body.password', 'is easily guessed'))
  const { send, says } = await dialogOf(<UsersPage />, 'New user', 'User name')
  send('a b')
  await says(en.users.nameRule)
  expect(create).not.toHaveBeenCalled()
  send('Kim@example.org')
  await says(en.users.nameTaken)
  send('kim')
  await says('is easily guessed')
  expect(screen.queryByText(/body\.password/)).toBeNull()
})

it('what has no field is said beside the page, once', async () => {
  vi.spyOn(api, 'executors').mockResolvedValue(none)
  vi.spyOn(executorApi, 'create').mockRejectedValue(refusal('body.labels', 'are not known'))
  const { send } = await dialogOf(<ExecutorsPage />, 'New executor', 'Name')
  send('shop')
  expect((await screen.findByText(/are not known/)).textContent).toBe('body.labels: are not known')
})
