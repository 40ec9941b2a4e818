// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import i18next from 'i18next'
import { useState, type ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { executorApi } from '../src/areas/executors/executors'
import type { Instance, RemovedInstance } from '../src/api/types'
import { RemoveButton } from '../src/areas/executors/ExecutorActions'
import RemovedDialog from '../src/areas/executors/RemovedDialog'
import { NoticesHolder } from '../src/shell/NoticesHolder'
import { en } from '../src/i18n/en'

vi.mock('@tanstack/react-router', async (original) => ({
  ...(await original<object>()),
  Link: ({ children, params }: { children: ReactNode; params: { runId: string } }) => <a href={`/runs/${params.runId}`}>{children}</a>,
}))

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(cleanup)

const instance = { id: '8', name: 'shop-1', running: 2, slots: 4 } as Instance

function Page() {
  const [removed, setRemoved] = useState<RemovedInstance>()
  return (
    <I18nextProvider i18n={i18next}>
      <RemoveButton instance={instance} onRemoved={setRemoved} />
      {removed && <RemovedDialog removed={removed} onClose={() => setRemoved(undefined)} />}
      <NoticesHolder />
    </I18nextProvider>
  )
}

it('an instance is removed after a question that says what it runs, and what becomes of each run is named', async () => {
  const answer = `{"denialId": "9", "leaseUntil": "2026-11-26T10:00:00Z", "runs": [
    {"id": "21", "jobName": "export", "state": "running", "then": "lost"},
    {"id": "22", "jobName": "totals", "state": "offered", "then": "retried"}]}`
  const remove = vi.spyOn(executorApi, 'removeInstance').mockResolvedValue({ ...(JSON.parse(answer) as RemovedInstance), instance })
  render(<Page />)
  fireEvent.click(screen.getByRole('button', { name: 'Remove: shop-1' }))
  const question = within(await screen.findByRole('dialog'))
  expect(question.getByText(/It runs 2 runs now/)).toBeTruthy()
  expect(remove).not.toHaveBeenCalled()
  fireEvent.change(question.getByLabelText('Reason'), { target: { value: ' stolen ' } })
  fireEvent.click(question.getByRole('button', { name: 'Remove' }))
  await waitFor(() => expect(remove).toHaveBeenCalledWith('8', 'stolen'))
  const lost = await screen.findByRole('link', { name: 'export 21' })
  expect(lost.getAttribute('href')).toBe('/runs/21')
  expect(lost.closest('li')?.textContent).toMatch(/is lost/)
  expect(screen.getByRole('link', { name: 'totals 22' }).closest('li')?.textContent).toMatch(/is retried/)
})
