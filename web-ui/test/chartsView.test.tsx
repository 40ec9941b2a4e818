// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import type { RunEndings } from '../src/api/types'
import { Band } from '../src/charts/Band'
import { Gantt } from '../src/charts/Gantt'
import { HourBars } from '../src/charts/HourBars'
import { en } from '../src/i18n/en'

beforeAll(async () => {
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(cleanup)

const show = (node: ReactNode) => render(<I18nextProvider i18n={i18next}>{node}</I18nextProvider>)
const readout = () => document.querySelector('.plot-readout')?.textContent
const open = (details: Element | null) => {
  if (details instanceof HTMLDetailsElement) details.open = true
  fireEvent(details as Element, new Event('toggle'))
}

const ended = (at: string, counts: Partial<RunEndings>): RunEndings => ({ at, runs: 0, succeeded: 0, failed: 0, timedOut: 0, lost: 0, cancelled: 0, missed: 0, discarded: 0, excluded: 0, lateness: null, duration: null, ...counts })
const bars = {
  from: '2026-11-21T10:00:00Z', to: '2026-11-21T13:00:00Z', step: 'hour' as const,
  items: [ended('2026-11-21T12:00:00Z', { succeeded: 7 }), ended('2026-11-21T10:00:00Z', { succeeded: 2, failed: 1, timedOut: 1, missed: 3 })],
  total: ended('2026-11-21T10:00:00Z', { succeeded: 9, failed: 1, timedOut: 1, missed: 3 }),
}

it('bars read out their hour, also an empty one, and open its runs', () => {
  const onOpen = vi.fn()
  show(<HourBars data={bars} label="Runs by hour" zone="UTC" onOpen={onOpen} />)
  const plot = screen.getByRole('button', { name: /^Runs by hour: 9 succeeded, 3 missed or discarded, 1 failed, 1 timed out\. / })
  expect(readout()).toBe('')
  fireEvent.keyDown(plot, { key: 'ArrowLeft' })
  expect(readout()).toBe('2026-11-21 12:00–13:00 UTC: 7 succeeded')
  fireEvent.keyDown(plot, { key: 'ArrowLeft' })
  expect(readout()).toBe('2026-11-21 11:00–12:00 UTC: no run ended')
  fireEvent.click(plot, { detail: 0 })
  expect(onOpen).toHaveBeenLastCalledWith('2026-11-21T11:00:00.000Z', '2026-11-21T12:00:00.000Z')
  fireEvent.keyDown(plot, { key: 'Home' })
  expect(readout()).toBe('2026-11-21 10:00–11:00 UTC: 2 succeeded, 3 missed or discarded, 1 failed, 1 timed out')
  expect(document.querySelector('.plot-readout')?.getAttribute('aria-live')).toBe('polite')
  fireEvent.blur(plot)
  expect(readout()).toBe('')
})

it('Shift with arrows selects a span, Enter takes it, and Escape gives it up', () => {
  const onSelect = vi.fn()
  const onOpen = vi.fn()
  show(<HourBars data={bars} label="Runs" zone="UTC" onOpen={onOpen} onSelect={onSelect} />)
  const plot = screen.getByRole('button')
  fireEvent.keyDown(plot, { key: 'End' })
  fireEvent.keyDown(plot, { key: 'ArrowLeft', shiftKey: true })
  expect(readout()).toMatch(/^Selected from 2026-11-21 11:00.* to 2026-11-21 12:00/)
  fireEvent.keyDown(plot, { key: 'Escape' })
  expect(readout()).toMatch(/^2026-11-21 11:00/)
  fireEvent.keyDown(plot, { key: 'ArrowLeft', shiftKey: true })
  fireEvent.click(plot, { detail: 0 })
  expect(onSelect).toHaveBeenLastCalledWith('2026-11-21T10:00:00.000Z', '2026-11-21T12:00:00.000Z')
  expect(onOpen).not.toHaveBeenCalled()
})

it('a drag selects a span, and a click opens one bar', () => {
  const onSelect = vi.fn()
  const onOpen = vi.fn()
  show(<HourBars data={bars} label="Runs" zone="UTC" onOpen={onOpen} onSelect={onSelect} />)
  const plot = screen.getByRole('button')
  vi.spyOn(plot, 'getBoundingClientRect').mockReturnValue({ left: 0, top: 0, width: 640 } as DOMRect)
  const at = (clientX: number) => ({ clientX, button: 0, pointerId: 1, pointerType: 'mouse' })
  fireEvent.pointerDown(plot, at(60))
  fireEvent.pointerMove(plot, at(400))
  fireEvent.pointerMove(plot, at(620))
  fireEvent.click(plot, { detail: 1, clientX: 620 })
  expect(onSelect).toHaveBeenLastCalledWith('2026-11-21T10:00:00.000Z', '2026-11-21T13:00:00.000Z')
  fireEvent.pointerDown(plot, at(60))
  fireEvent.click(plot, { detail: 1, clientX: 60 })
  expect(onOpen).toHaveBeenCalledExactlyOnceWith('2026-11-21T10:00:00.000Z', '2026-11-21T11:00:00.000Z')
})

it('bars name their outcomes, the zone and the larger scale, and are a table too', () => {
  const few = { ...bars, items: [ended('2026-11-21T12:00:00Z', { succeeded: 700, failed: 1 })], total: ended('', { succeeded: 700, failed: 1 }) }
  const { container } = show(<HourBars data={few} label="Runs" zone="Asia/Shanghai" />)
  expect([...container.querySelectorAll('.legend li')].map((one) => one.textContent)).toEqual(['succeeded', 'failed', 'Times in Asia/Shanghai', 'Failures have a larger scale.'])
  open(container.querySelector('details'))
  expect(screen.getAllByRole('row').map((row) => row.textContent)).toEqual(['Timesucceededfailed', '2026-11-21 20:00–21:00 Asia/Shanghai7001'])
})

it('a band reads p50 and p95, and does not tell two values where it knows one', () => {
  const hour = 3_600_000
  const from = Date.parse('2026-11-21T10:00:00Z')
  const steps = [
    { from, to: from + hour, spread: { count: 1, p50Ms: 1_200, p95Ms: 1_200 } },
    { from: from + hour, to: from + 2 * hour, spread: { count: 40, p50Ms: 900, p95Ms: 5_000 } },
  ]
  const { container } = show(<Band label="Delay" steps={steps} from={from} to={from + 2 * hour} zone="UTC" bound={{ ms: 1_000, name: 'Goal' }} />)
  const plot = screen.getByRole('button')
  fireEvent.keyDown(plot, { key: 'Home' })
  expect(readout()).toBe('2026-11-21 10:00 UTC: ≈ 1.2 s · 1 run')
  fireEvent.keyDown(plot, { key: 'ArrowRight' })
  expect(readout()).toBe('2026-11-21 11:00 UTC: p50 900 ms, p95 5 s · 40 runs')
  expect([...container.querySelectorAll('.legend li')].map((one) => one.textContent)).toEqual(['p50', 'p95', 'Goal 1 s', 'Times in UTC'])
  expect(container.querySelector('line.bound')).toBeTruthy()
})

it('dots open their runs, and a span of them ends behind its last run', () => {
  const from = Date.parse('2026-11-21T10:00:00Z')
  const dots = [0, 1, 2].map((i) => ({ id: String(i), at: from + i * 60_000, ms: 10 ** i, state: i === 1 ? ('failed' as const) : ('succeeded' as const) }))
  const onOpen = vi.fn()
  const onSelect = vi.fn()
  show(<Band label="Durations" steps={[]} dots={dots} from={from} to={from + 600_000} zone="UTC" onOpen={onOpen} onSelect={onSelect} />)
  const plot = screen.getByRole('button')
  fireEvent.keyDown(plot, { key: 'Home' })
  fireEvent.keyDown(plot, { key: 'ArrowRight' })
  expect(readout()).toBe('2026-11-21 10:01 UTC: 10 ms, Failed')
  fireEvent.click(plot, { detail: 0 })
  expect(onOpen.mock.lastCall?.[0]).toMatchObject({ id: '1' })
  fireEvent.keyDown(plot, { key: 'ArrowRight', shiftKey: true })
  fireEvent.click(plot, { detail: 0 })
  expect(onSelect).toHaveBeenLastCalledWith('2026-11-21T10:01:00.000Z', '2026-11-21T10:02:01.000Z')
})

it('a course of a run reads its segments, and opens the run of a row that has one', () => {
  const from = Date.parse('2026-11-21T10:00:00Z')
  const onOpen = vi.fn()
  const { container } = show(
    <Gantt
      label="Course"
      zone="UTC"
      start={from}
      onOpen={onOpen}
      rows={[
        { key: '1', name: 'Attempt 1', segments: [{ kind: 'wait', from, to: from + 40, state: 'failed' }, { kind: 'run', from: from + 40, to: from + 2_040, state: 'failed' }], marks: [{ at: from + 1_500, name: 'p95 of 7 days (1.4 s)', kind: 'p95' }] },
        { key: 'g', name: 'last good run', runId: '77', segments: [{ kind: 'ghost', from: from + 40, to: from + 900, state: 'succeeded' }] },
      ]}
    />,
  )
  const plot = screen.getByRole('button', { name: /^Course\. / })
  fireEvent.keyDown(plot, { key: 'Home' })
  expect(readout()).toBe('Attempt 1 · waits · 40 ms · 2026-11-21 10:00:00.000–10:00:00.040 UTC')
  fireEvent.click(plot, { detail: 0 })
  expect(onOpen).not.toHaveBeenCalled()
  fireEvent.keyDown(plot, { key: 'End' })
  fireEvent.click(plot, { detail: 0 })
  expect(onOpen).toHaveBeenCalledExactlyOnceWith('77')
  expect([...container.querySelectorAll('.legend li')].map((one) => one.textContent)).toEqual(['waits', 'handler runs', 'last good run', 'p95 of 7 days (1.4 s)', 'Seconds and minutes since the fire time, 2026-11-21 10:00:00.000 UTC.'])
  expect([...container.querySelectorAll('text.tick')].map((one) => one.textContent)).toContain('0 s')
  open(container.querySelector('details'))
  expect(screen.getAllByRole('row')).toHaveLength(4)
})
