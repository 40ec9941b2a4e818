// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import type { LastRun } from '../src/api/types'
import { Peal } from '../src/charts/Peal'
import { en } from '../src/i18n/en'

const navigate = vi.hoisted(() => vi.fn())
vi.mock('@tanstack/react-router', async (original) => ({ ...(await original<object>()), useNavigate: () => navigate }))

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(cleanup)

const runs: LastRun[] = [
  { id: '3', state: 'failed', reason: '', fireAt: '2026-11-21T12:02:00Z', finishedAt: '2026-11-21T12:02:01Z', latenessMs: 3, durationMs: 900, message: 'cannot pay' },
  { id: '2', state: 'missed', reason: 'no_executor', fireAt: '2026-11-21T12:01:00Z', finishedAt: '2026-11-21T12:01:01Z', latenessMs: null, durationMs: null, message: 'no instance' },
  { id: '1', state: 'succeeded', fireAt: '2026-11-21T12:00:00Z', finishedAt: '2026-11-21T12:00:01Z', latenessMs: 2, durationMs: 42 },
]
const show = (large = false) =>
  render(
    <I18nextProvider i18n={i18next}>
      <Peal runs={runs} name="pay" zone="UTC" large={large} />
    </I18nextProvider>,
  )

it('reads out the run of the cursor, and opens it', () => {
  const { container } = show()
  const strip = screen.getByRole('button', { name: 'Last 3 runs of pay, 1 failed, newest: Failed. Arrow keys choose a run, Enter opens it.' })
  const readout = () => container.querySelector('[aria-live]')?.textContent
  expect(readout()).toBe('')
  fireEvent.keyDown(strip, { key: 'ArrowLeft' })
  expect(readout()).toBe('Failed · 2026-11-21 12:02:00 UTC · 900 ms · cannot pay')
  fireEvent.keyDown(strip, { key: 'ArrowLeft' })
  expect(readout()).toBe('Missed · 2026-11-21 12:01:00 UTC · No instance could take it in time')
  fireEvent.click(strip, { detail: 0 })
  expect(navigate).toHaveBeenLastCalledWith({ to: '/runs/$runId', params: { runId: '2' } })
  fireEvent.keyDown(strip, { key: 'Home' })
  expect(readout()).toBe('Succeeded · 2026-11-21 12:00:00 UTC · 42 ms')
  fireEvent.blur(strip)
  expect(readout()).toBe('')
  fireEvent.click(strip, { detail: 0 })
  expect(navigate).toHaveBeenLastCalledWith({ to: '/runs/$runId', params: { runId: '3' } })
})

it('opens the run under the pointer', () => {
  show()
  const strip = screen.getByRole('button')
  vi.spyOn(strip, 'getBoundingClientRect').mockReturnValue({ left: 100, width: 138 } as DOMRect)
  fireEvent.click(strip, { detail: 1, clientX: 100 + 18 * 7 + 1 })
  expect(navigate).toHaveBeenLastCalledWith({ to: '/runs/$runId', params: { runId: '2' } })
})

it('has its runs as a table, and names the shapes that are there', () => {
  const { container } = show(true)
  expect([...container.querySelectorAll('.legend li')].map((one) => one.textContent).slice(0, 3)).toEqual(['Failed', 'Missed', 'Succeeded'])
  const details = container.querySelector('details')
  if (details) details.open = true
  fireEvent(details as Element, new Event('toggle'))
  expect(screen.getAllByRole('row')).toHaveLength(4)
  expect(screen.getByRole('cell', { name: 'cannot pay' })).toBeTruthy()
})

it('says that a job has not run', () => {
  render(
    <I18nextProvider i18n={i18next}>
      <Peal runs={[]} name="pay" zone="UTC" />
    </I18nextProvider>,
  )
  expect(screen.getByText('not yet run')).toBeTruthy()
})
