// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { proposalApi } from '../src/areas/jobs/change/proposals'
import { queryClient } from '../src/api/queries'
import type { Job } from '../src/api/types'
import { DeclaredNote } from '../src/areas/jobs/change/DeclaredNote'
import { en } from '../src/i18n/en'

const canEdit = vi.hoisted(() => ({ value: true }))
vi.mock('@tanstack/react-router', async (original) => ({
  ...(await original<object>()),
  Link: ({ children }: { children: ReactNode }) => <a href="#link">{children}</a>,
}))
vi.mock('../src/ui/hooks', async (original) => ({ ...(await original<object>()), useCan: () => canEdit.value }))

const sent: unknown[] = []
const declaration = {
  hash: 'd2',
  version: '1.5.0',
  editedAt: '2026-11-02T00:00:00.000Z',
  editedBy: 'anna',
  giveBack: true,
  changes: [{ field: 'priority', from: 3, to: 0 }],
}
const job = (change: object = {}) =>
  ({
    id: '7', name: 'close-day', revision: 4, source: 'console', handler: 'close',
    declared: { executor: { id: '5', name: 'shop' }, ownership: 'until_edited', removal: 'default', version: '1.4.0', gone: false, locked: false },
    ...change,
  }) as unknown as Job

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
beforeEach(() => {
  vi.spyOn(proposalApi, 'proposals').mockImplementation(async () => ({ items: [], nextCursor: null }))
  vi.spyOn(proposalApi, 'declaration').mockImplementation(async () => declaration)
  vi.spyOn(proposalApi, 'giveBackJob').mockImplementation(async (...asked) => {
    sent.push(asked)
    return {} as Awaited<ReturnType<typeof proposalApi.giveBackJob>>
  })
  canEdit.value = true
  sent.length = 0
  queryClient.clear()
})
afterEach(cleanup)

const show = (shown: Job) =>
  render(
    <I18nextProvider i18n={i18next}>
      <>
        <QueryClientProvider client={queryClient}>
          <DeclaredNote job={shown} />
        </QueryClientProvider>
      </>
    </I18nextProvider>,
  )

it('an edited job tells how its code differs, and is given back after the difference was shown', async () => {
  show(job())
  await screen.findByText(/^Changed in the console on .* by anna$/)
  expect(screen.getByText(/The code's declaration \(version 1\.5\.0\) differs in: Priority\. Changes of the code are not applied/)).toBeTruthy()
  fireEvent.click(screen.getByRole('button', { name: 'Give back to the code' }))
  const dialog = await screen.findByRole('dialog')
  expect(within(dialog).getByText('Declared in the code')).toBeTruthy()
  expect(within(dialog).getByText('priority')).toBeTruthy()
  expect(sent).toEqual([])
  fireEvent.click(within(dialog).getByRole('button', { name: 'Give back to the code' }))
  await waitFor(() => expect(sent).toEqual([['7', 'd2']]))
})

it('who may not edit reads it and has no button', async () => {
  canEdit.value = false
  show(job())
  await screen.findByText(/^Changed in the console/)
  expect(screen.queryByRole('button')).toBeNull()
})

it('a job that follows its code, or is the console\'s by declaration, says nothing of edits', async () => {
  const declared = job().declared
  show(job({ source: 'code' }))
  show(job({ declared: { ...declared, ownership: 'console' } }))
  await waitFor(() => expect(queryClient.isFetching()).toBe(0))
  expect(screen.queryByText(/Changed in the console/)).toBeNull()
})
