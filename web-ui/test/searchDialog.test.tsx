// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { useState } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { queryClient } from '../src/api/queries'
import { searchApi, type SearchHit } from '../src/api/search'
import SearchDialog, { byKind, pageOf } from '../src/shell/SearchDialog'
import { en } from '../src/i18n/en'

const navigate = vi.fn<(to: object) => void>()
vi.mock('@tanstack/react-router', async (original) => ({ ...(await original<object>()), useNavigate: () => navigate }))

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  Element.prototype.scrollIntoView = () => {}
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
  queryClient.clear()
})

const hit = (kind: string, id: string, name: string, hint = ''): SearchHit => ({ kind, id, name, hint })

it('each kind has a page, and a timer is shown in the list', () => {
  expect(pageOf(hit('Job', '7', 'nightly', 'shop'))).toEqual({ to: '/jobs/7' })
  expect(pageOf(hit('AlertRule', '7', 'late'))).toEqual({ to: '/settings/notifications/rules/7' })
  expect(pageOf(hit('Timer', '7', 'order/1', 'shop/pay/later'))).toEqual({ to: '/timers', search: { executor: 'shop', handler: 'pay/later', keyPrefix: 'order/1' } })
  expect(pageOf(hit('Unknown', '7', 'x'))).toBeUndefined()
  expect(byKind([hit('Job', '1', 'a'), hit('Executor', '2', 'b'), hit('Job', '3', 'c')]).map((group) => [group.kind, group.hits.length])).toEqual([['Job', 2], ['Executor', 1]])
})

function Searching({ typed = '', onClose }: { typed?: string; onClose: () => void }) {
  const [text, setText] = useState(typed)
  return (
    <QueryClientProvider client={queryClient}>
      <I18nextProvider i18n={i18next}>
        <SearchDialog text={text} onText={setText} onClose={onClose} />
      </I18nextProvider>
    </QueryClientProvider>
  )
}

it('an Enter before the hits are there leads to the first of them, or to none', async () => {
  let answer: (hits: SearchHit[]) => void = () => {}
  vi.spyOn(searchApi, 'search').mockImplementation(() => new Promise((resolve) => (answer = (items) => resolve({ items, more: [] } as never))))
  const close = vi.fn()
  render(<Searching typed={'night\n'} onClose={close} />)
  const field = await screen.findByRole<HTMLInputElement>('combobox')
  expect(field.value).toBe('night')
  await vi.waitFor(() => expect(searchApi.search).toHaveBeenCalledWith('night', expect.anything()))
  answer([])
  await vi.waitFor(() => expect(screen.getByRole('status').textContent).not.toContain('…'))
  expect(close).not.toHaveBeenCalled()
  fireEvent.change(field, { target: { value: 'nightly' } })
  fireEvent.keyDown(field, { key: 'Enter' })
  await vi.waitFor(() => expect(searchApi.search).toHaveBeenCalledWith('nightly', expect.anything()))
  navigate.mockClear()
  answer([hit('Job', '9', 'nightly')])
  await vi.waitFor(() => expect(navigate).toHaveBeenCalledWith({ to: '/jobs/9' }))
  expect(close).toHaveBeenCalledOnce()
})

it('the keyboard chooses a hit and leads to its page', async () => {
  const ask = vi.spyOn(searchApi, 'search').mockResolvedValue({ items: [hit('Job', '1', 'nightly', 'shop'), hit('Executor', '2', 'night-shop'), hit('Job', '3', 'fortnight', 'shop')], more: ['Job'] } as never)
  const close = vi.fn()
  render(<Searching onClose={close} />)
  const field = await screen.findByRole('combobox')
  fireEvent.change(field, { target: { value: 'n' } })
  fireEvent.change(field, { target: { value: ' night ' } })
  expect(await screen.findAllByRole('option')).toHaveLength(3)
  expect(ask.mock.calls.map(([q]) => q)).toEqual(['night'])
  expect(screen.getByRole('status').textContent).toContain('There are more of: Jobs')
  const chosen = () => screen.getByRole('option', { selected: true })
  expect(chosen().textContent).toContain('nightly')
  fireEvent.keyDown(field, { key: 'ArrowUp' })
  expect(chosen().textContent).toContain('night-shop')
  expect(field.getAttribute('aria-activedescendant')).toBe(chosen().id)
  fireEvent.keyDown(field, { key: 'ArrowDown' })
  fireEvent.keyDown(field, { key: 'ArrowDown' })
  expect(chosen().textContent).toContain('fortnight')
  fireEvent.keyDown(field, { key: 'Enter' })
  expect(close).toHaveBeenCalledOnce()
  expect(navigate).toHaveBeenCalledWith({ to: '/jobs/3' })
})
