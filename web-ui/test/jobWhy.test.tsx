// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { http } from '../src/api/client'
import { queryClient } from '../src/api/queries'
import type { Job, Run } from '../src/api/types'
import { namesNobody } from '../src/areas/jobs/form/NobodyTold'
import { JobVerdict } from '../src/areas/jobs/JobVerdict'
import JobWhy, { lastRunOf } from '../src/areas/jobs/JobWhy'
import { en } from '../src/i18n/en'

vi.mock('@tanstack/react-router', async (original) => ({
  ...(await original<object>()),
  Link: ({ children }: { children: ReactNode }) => <a href="#link">{children}</a>,
  useNavigate: () => () => {},
}))
vi.mock('../src/ui/LinkButton', () => ({ LinkButton: ({ children }: { children: ReactNode }) => <a href="#link">{children}</a> }))
vi.mock('../src/ui/hooks', async (original) => ({ ...(await original<object>()), useCan: () => true }))

const job = (more: object = {}) => ({ id: '1', name: 'close', schedule: { kind: 'cron', zone: 'UTC', text: { en: 'At 00:00, on the 31st of February.' } }, recentRuns: [], nextFireAt: null, neverFires: false, ...more }) as unknown as Job
const run = (id: string, fireAt: string, cause = 'schedule') => ({ id, jobId: '1', fireAt, cause, state: 'succeeded', lingers: false }) as unknown as Run
const explained = (summary: string) => ({ run: null, summary: { en: summary, zh: summary }, steps: [], instances: [], before: null, after: null, party: '', stamps: null })

let runs: Run[] = []
let asked: string[] = []

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
beforeEach(() => {
  asked = []
  vi.spyOn(http, 'GET').mockImplementation(((path: string, init: { params?: { path?: { id?: string }; query?: Record<string, unknown> } }) => {
    asked.push(`${path.replace('{id}', init.params?.path?.id ?? '')} ${JSON.stringify(init.params?.query ?? {})}`)
    const data = path.endsWith('/explain') ? explained(`${path.includes('/runs/') ? 'the run' : 'the fire'} is explained`) : { items: runs, nextCursor: null }
    return Promise.resolve({ data, response: new Response() })
  }) as never)
})
afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
  queryClient.clear()
})

const show = (node: ReactNode) =>
  render(
    <QueryClientProvider client={queryClient}>
      <I18nextProvider i18n={i18next}>{node}</I18nextProvider>
    </QueryClientProvider>,
  )

describe('the drawer of the last run', () => {
  it('asks for a run of any cause, the newest by fire time that has come', () => {
    const list = [run('1', '2026-01-01T00:00:00Z'), run('2', '2026-01-03T00:00:00Z', 'import'), run('3', '2026-01-09T00:00:00Z')]
    expect(lastRunOf(list, Date.parse('2026-01-05T00:00:00Z'))?.id).toBe('2')
    expect(lastRunOf(list, Date.parse('2025-01-05T00:00:00Z'))).toBeNull()
  })

  it.each([
    ['manual', 'the run is explained', '/api/v1/runs/7/explain {}'],
    ['import', 'the run is explained', '/api/v1/runs/7/explain {}'],
    ['schedule', 'the fire is explained', '/api/v1/jobs/1/explain {"at":"2026-01-01T00:00:00Z"}'],
  ])('explains one of cause %s', async (cause, text, request) => {
    runs = [run('7', '2026-01-01T00:00:00Z', cause)]
    show(<JobWhy job={job()} at="last" />)
    await screen.findByText(text)
    expect(asked).toContain('/api/v1/runs {"jobId":"1","limit":20}')
    expect(asked).toContain(request)
    expect(screen.getByRole('button', { name: 'Last run' })).toBeTruthy()
  })

  it('says that there is none, and names no control that is not there', async () => {
    runs = []
    show(<JobWhy job={job()} at="last" />)
    await screen.findByText('This job has not run yet')
    expect(screen.queryByRole('button', { name: 'Last run' })).toBeNull()
    expect(document.body.textContent).not.toMatch(/last run/i)
    expect(asked.filter((one) => one.includes('explain'))).toEqual([])
  })
})

describe('a job without a fire to come', () => {
  it('says so in its first sentence, with the way to its form', () => {
    show(<JobVerdict job={job({ neverFires: true })} />)
    expect(screen.getByText('It never fires.').parentElement?.textContent).toBe('It never fires. At 00:00, on the 31st of February. Edit')
    cleanup()
    show(<JobVerdict job={job()} />)
    expect(screen.queryByText('It never fires.')).toBeNull()
  })
})

describe('alerts without a receiver', () => {
  const alert = { onFailure: true, includeNoExecutor: true, emails: [] as string[], webhookUrl: '', webhookSecret: '' }
  const owner = { name: 'Ann', email: '' }
  it('are those that name none of the three', () => {
    expect(namesNobody({ alert, owner })).toBe(true)
    expect(namesNobody({ alert: { ...alert, onFailure: false }, owner })).toBe(true)
    expect(namesNobody({ alert: { ...alert, onFailure: false, includeNoExecutor: false }, owner })).toBe(false)
    expect(namesNobody({ alert, owner: { ...owner, email: 'ann@example.com' } })).toBe(false)
    expect(namesNobody({ alert: { ...alert, emails: ['ann@example.com'] }, owner })).toBe(false)
    expect(namesNobody({ alert: { ...alert, webhookUrl: 'https://example.com' }, owner })).toBe(false)
  })
})
