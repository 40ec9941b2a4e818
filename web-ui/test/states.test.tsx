// @vitest-environment jsdom
import { cleanup, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ApiError } from '../src/api/problem'
import type { Schedule } from '../src/api/types'
import { ScheduleText } from '../src/areas/jobs/ScheduleText'
import { ErrorState } from '../src/ui/States'
import { en } from '../src/i18n/en'

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(cleanup)

const show = (children: ReactNode) =>
  render(
    <I18nextProvider i18n={i18next}>
      <>{children}</>
    </I18nextProvider>,
  )

describe('ErrorState', () => {
  it('offers to ask again, and leaves the title to the page', () => {
    document.title = 'Jobs · Carillon'
    show(<ErrorState error={new ApiError({ status: 503, code: 'unavailable' })} onRetry={() => {}} />)
    expect(screen.getByRole('button', { name: 'Try again' })).toBeTruthy()
    expect(document.title).toBe('Jobs · Carillon')
  })

  it('leads away from what is gone: asking again does not bring it back', () => {
    document.title = 'Carillon'
    show(<ErrorState error={new ApiError({ status: 404, code: 'not_found' })} onRetry={() => {}} />)
    expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull()
    expect(screen.getByRole('link', { name: 'Go to the overview' }).getAttribute('href')).toBe('/overview')
    expect(document.title).toBe('Nothing here · Carillon')
  })
})

describe('ScheduleText', () => {
  const cron: Schedule = { kind: 'cron', expr: '0 5 0 * * *', zone: 'Asia/Shanghai', text: { en: 'At 00:05 every day (Asia/Shanghai)', zh: '每天 00:05（Asia/Shanghai）' } }
  it('names the zone once', () => {
    const { container } = show(<ScheduleText schedule={cron} />)
    expect(container.textContent).toBe('0 5 0 * * * At 00:05 every day (Asia/Shanghai)')
  })
  it.each<[string, Schedule]>([
    ['without a sentence', { ...cron, text: undefined }],
    ['with a sentence that does not name it', { ...cron, text: { en: 'Daily', zh: '每天' } }],
  ])('names it itself %s', (_, schedule) => {
    const { container } = show(<ScheduleText schedule={schedule} />)
    expect(container.textContent).toContain('Asia/Shanghai')
  })
  it('leaves the sentence to who shows it beside', () => {
    const { container } = show(<ScheduleText schedule={cron} brief />)
    expect(container.textContent).toBe('0 5 0 * * * Asia/Shanghai')
  })
})
