// @vitest-environment jsdom
import { cleanup, render } from '@testing-library/react'
import i18next from 'i18next'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { LogCount } from '../src/areas/runs/log/LogView'
import { en } from '../src/i18n/en'
import { zh } from '../src/i18n/zh'
import type { LogSnapshot } from '../src/areas/runs/log/logStore'

beforeAll(() => i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en }, zh: { translation: zh } }, interpolation: { escapeValue: false } }))
afterEach(cleanup)

const snapshot: LogSnapshot = { lines: [], first: 1, lastLine: 100_001, loaded: true, atEnd: true, complete: true, truncated: false, counts: null, interrupted: false, error: undefined }
const text = (log: Partial<LogSnapshot>) =>
  render(
    <I18nextProvider i18n={i18next}>
      <LogCount log={{ ...snapshot, ...log }} />
    </I18nextProvider>,
  ).container.textContent

it('says "complete" of a log in which no line is missing', () => {
  expect(text({ counts: { written: 100_001, kept: 100_001, missing: [] } })).toBe('100,001 lines · complete')
})
it('counts what is missing, and says why', () => {
  expect(text({ truncated: true, counts: { written: 100_001, kept: 55_580, missing: [{ lines: 44_000, why: 'executor' }, { lines: 421, why: 'run_limit' }] } })).toBe(
    '55,580 of 100,001 lines, 44,000 missing: they came faster than they could be stored, 421 missing: the log of the run is over its limit · incomplete',
  )
})
it('is live as long as lines can come', () => {
  expect(text({ complete: false })).toBe('100,001 lines ·  live')
})
