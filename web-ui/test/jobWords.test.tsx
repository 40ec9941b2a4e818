// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import i18next from 'i18next'
import type { ReactNode } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { api } from '../src/api/endpoints'
import { proposalApi } from '../src/areas/jobs/change/proposals'
import { queryClient } from '../src/api/queries'
import type { Proposal } from '../src/api/types'
import { NoticesHolder } from '../src/shell/NoticesHolder'
import { en } from '../src/i18n/en'
import { zh } from '../src/i18n/zh'
import { settingLabel, settingsOf, settingText } from '../src/areas/jobs/jobWords'
import { newJob } from '../src/areas/jobs/form/jobForm'
import Proposals from '../src/areas/jobs/change/Proposals'

vi.mock('@tanstack/react-router', async (original) => ({ ...(await original<object>()), Link: ({ children }: { children: ReactNode }) => <a href="#link">{children}</a> }))
vi.mock('../src/ui/hooks', async (original) => ({ ...(await original<object>()), useCan: () => true }))

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
beforeEach(() => queryClient.clear())
afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
})

const { executor: _, ...base } = newJob()
const spec: Proposal['proposed'] = {
  ...base,
  name: 'noon-report',
  description: 'Revenue at noon',
  handler: 'report',
  labels: { team: 'books' },
  owner: { name: '', email: 'books@shop.example' },
  schedule: { kind: 'cron', expr: '0 0 12 * * *', dialect: 'seconds', zone: 'Asia/Shanghai', text: { en: 'At 12:00 every day (Asia/Shanghai)', zh: '每天 12:00（Asia/Shanghai）' } },
  retry: { maxAttempts: 4, delay: '30s', backoff: 1, maxDelay: '10m' },
  timeout: '10m0s',
  alert: { ...base.alert, webhookSecretSet: false },
} as Proposal['proposed']

const proposal: Proposal = {
  id: '5', name: 'noon-report', executor: { id: '9', name: 'sample-shop' }, job: null as never, state: 'pending', hash: 'h1', version: '2.0', proposedAt: new Date().toISOString(),
  decidedAt: null, decidedBy: '', proposed: spec, changes: [],
}

describe('a job in words', () => {
  const t = i18next.t.bind(i18next)
  it('names each setting as the form does, and has a text for its value', () => {
    expect(settingLabel('retry.maxAttempts', i18next.t)).toBe('Attempts')
    expect(settingLabel('what.is.new', t)).toBeUndefined()
    for (const [path, value, text] of [
      ['timeout', '0s', 'none'],
      ['timeout', '1m30s', '1 m 30 s'],
      ['blocking', 'cover_early', 'Stop the earlier run and take its place'],
      ['blocking', 'of_a_newer_server', 'of_a_newer_server'],
      ['schedule.kind', 'daily_window', 'Daily window'],
      ['schedule.expr', '0 0 12 * * *', '0 0 12 * * *'],
      ['labels', { team: 'books', tier: '1' }, 'team=books, tier=1'],
      ['schedule.calendars', [{ id: '7', name: 'China' }], 'China'],
      ['alert.onFailure', true, 'Yes'],
      ['owner.email', '', 'none'],
      ['priority', 5, '5'],
      ['what.is.new', { a: 1 }, '{"a":1}'],
    ] as const) expect(settingText(path, value, t), `${path} ${String(value)}`).toBe(text)
  })

  it('tells what is unlike a new job from what is like it', () => {
    const { special, usual } = settingsOf(spec)
    expect(special.map((one) => one.path)).toEqual(['retry.maxAttempts', 'retry.delay', 'timeout'])
    expect(usual.map((one) => one.path)).toContain('blocking')
    expect(usual.map((one) => one.path)).toContain('retry.backoff')
    // How a job waits that is never retried makes no difference.
    expect(settingsOf({ ...spec, timeout: '0s', retry: { maxAttempts: 1, delay: '5s', backoff: 3, maxDelay: '1m' } }).special).toEqual([])
    // Runs of a job without a schedule run side by side where nobody says otherwise.
    const asked = { ...spec, schedule: { ...spec.schedule, kind: 'none' }, retry: base.retry, timeout: '0s' } as const
    expect(settingsOf({ ...asked, blocking: 'parallel' }).special).toEqual([])
    expect(settingsOf(asked).special.map((one) => one.path)).toEqual(['blocking'])
  })
})

const show = (items: Proposal[]) => {
  vi.spyOn(proposalApi, 'proposals').mockResolvedValue({ items, nextCursor: null })
  vi.spyOn(api, 'previewSchedule').mockResolvedValue({ text: spec.schedule.text, neverFires: false, fires: [{ at: '2026-12-01T04:00:00.000Z' }] } as never)
  render(
    <I18nextProvider i18n={i18next}>
      <>
        <QueryClientProvider client={queryClient}>
          <Proposals />
        </QueryClientProvider>
        <NoticesHolder />
      </>
    </I18nextProvider>,
  )
}

describe('a limit of nothing', () => {
  const zeros = { parallelism: 0, 'sendRetry.maxSends': 0, 'sendRetry.delay': '0s' }
  it.each([
    ['en', en, ['no limit', 'as many as fit', 'as the instance suggests']],
    ['zh', zh, ['不限', '派发时限内不限次数', '由实例的应答决定']],
  ] as const)('is said in words: %s', (lng, resources, words) => {
    i18next.addResourceBundle(lng, 'translation', resources)
    const t = i18next.getFixedT(lng)
    expect(Object.entries(zeros).map(([path, value]) => settingText(path, value, t))).toEqual(words)
    expect(settingText('parallelism', 3, t)).toBe('3')
    expect(settingText('priority', 0, t), 'that is a number').toBe('0')
  })
})

describe('Proposals', () => {
  it('shows a new job in words, with its next fires and what is unlike the default', async () => {
    show([proposal])
    const card = within(await screen.findByRole('region', { name: 'noon-report' }))
    await card.findByText('2026-12-01 12:00:00')
    expect(card.getByText('At 12:00 every day (Asia/Shanghai)', { selector: 'strong' })).toBeTruthy()
    for (const text of ['Revenue at noon', 'report', 'books@shop.example', 'team=books']) expect(card.getByText(text)).toBeTruthy()
    expect(card.getByText('Attempts').nextElementSibling?.textContent).toBe('4 · default: 1')
    expect(card.getByText('Timeout').nextElementSibling?.textContent).toBe('10 m · default: none')
    expect(card.getByText('At once, at most').nextElementSibling?.textContent).toBe('no limit')
    expect(card.queryByText(/"handler"/), 'no JSON').toBeNull()
    const accept = vi.spyOn(proposalApi, 'acceptProposal').mockResolvedValue(undefined as never)
    fireEvent.click(card.getByRole('button', { name: 'Accept, create the job: noon-report' }))
    await waitFor(() => expect(accept).toHaveBeenCalledWith('5', 'h1'))
    await screen.findByText('The job noon-report was created.')
  })

  it('shows a change as the two sides of each setting', async () => {
    show([{ ...proposal, job: { id: '3', name: 'noon-report' }, changes: [{ field: 'schedule.expr', from: '0 0 11 * * *', to: '0 0 12 * * *' }, { field: 'timeout', from: '0s', to: '10m0s' }] }])
    const card = within(await screen.findByRole('region', { name: 'noon-report' }))
    expect(card.getAllByRole('columnheader').map((one) => one.textContent)).toEqual(['Field', 'Now', 'Proposed'])
    expect(card.getAllByRole('row').slice(1).map((row) => within(row).getAllByRole('cell').map((cell) => cell.textContent))).toEqual([
      ['Cron expression schedule.expr', '0 0 11 * * *', '0 0 12 * * *'],
      ['Timeout timeout', 'none', '10 m'],
    ])
    await card.findByText('Next fires, if accepted')
    await card.findByText('2026-12-01 12:00:00')
    const decline = vi.spyOn(proposalApi, 'declineProposal').mockResolvedValue(undefined as never)
    fireEvent.click(card.getByRole('button', { name: 'Reject, leave it as it is: noon-report' }))
    await waitFor(() => expect(decline).toHaveBeenCalledWith('5', 'h1'))
    await screen.findByText('noon-report stays as it is.')
  })
})
