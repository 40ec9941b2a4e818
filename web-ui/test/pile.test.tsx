// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { limitApi } from '../src/areas/executors/limits'
import { queryClient } from '../src/api/queries'
import { QuotaTable } from '../src/areas/access/Quotas'
import { en } from '../src/i18n/en'
import { zh } from '../src/i18n/zh'

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en }, zh: { translation: zh } }, interpolation: { escapeValue: false } })
})
afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
  queryClient.clear()
})

it('says in one sentence that runs pile up, in both languages', () => {
  expect(i18next.getFixedT('en')('jobs.list.pilesUp', { count: 1101 })).toBe('Runs take longer than the interval. 1,101 wait.')
  expect(i18next.getFixedT('zh')('jobs.list.pilesUp', { count: 101 })).toBe('执行时间超过触发间隔，有 101 次在等待。')
})

describe('the quota of fires', () => {
  const show = async (limit: number) => {
    vi.spyOn(limitApi, 'quotas').mockResolvedValue({ items: [{ kind: 'fires_per_minute', used: 60_000, limit, default: true }, { kind: 'jobs', used: 1, limit: 0, default: true }], nextCursor: null } as never)
    render(
      <QueryClientProvider client={queryClient}>
        <I18nextProvider i18n={i18next}>
          <QuotaTable tenant={{ id: '1', name: 'home' }} platform={false} />
        </I18nextProvider>
      </QueryClientProvider>,
    )
    await screen.findByText('Fires per minute')
  }
  it('says why a tenant that is alone has none', async () => {
    await show(0)
    expect(screen.getAllByText('No other tenant has jobs.')).toHaveLength(1)
  })
  it('says nothing beside a limit', async () => {
    await show(1_200_000)
    expect(screen.queryByText('No other tenant has jobs.')).toBeNull()
    expect(screen.getByText('1,200,000')).toBeTruthy()
  })
})
