import { describe, expect, test } from 'vitest'
import type { Login } from '../src/api/types'
import { allows, isBound, type Needs } from '../src/shell/Permitted'
import { router } from '../src/shell/router'

const roles = ['viewer', 'operator', 'editor', 'scripter', 'admin'] as const

/** What is not for every viewer. */
const restricted: Record<string, Needs> = {
  '/jobs/new': 'editor',
  '/settings/notifications/rules/new': 'editor',
  '/settings/notifications/rules/$ruleId': 'editor',
  '/settings/notifications/channels/new': 'editor',
  '/settings/notifications/channels/$channelId': 'editor',
  '/jobs/$jobId/edit': 'editor',
  '/calendars/new': 'editor',
  '/calendars/$calendarId/edit': 'editor',
  '/settings/integrations/connections/new': 'editor',
  '/settings/integrations/connections/$connectionId/edit': 'editor',
  '/settings/integrations/scripts/new': 'scripter',
  '/settings/integrations/scripts/$scriptId/edit': 'scripter',
  '/timers': 'operator',
  '/settings/people/users': 'admin',
  '/settings/people/api-keys': 'admin',
  '/settings/tenants': 'platform',
}

const open = ['/login', '/docs', '/password', '/invitations']

const session = (role: (typeof roles)[number], platformAdmin = false) => ({ user: { role, platformAdmin } }) as unknown as Login

test('pages of the whole tenant are not for people whose role is bound to executors', () => {
  const kept = Object.values(router.routesByPath).filter((one) => !one.options.staticData?.whole).map((one) => one.fullPath as string)
  expect(kept.filter((path) => /^\/(overview|jobs|runs|timers|executors)/.test(path)).length).toBeGreaterThan(12)
  expect(kept.filter((path) => !/^\/(\$?$|overview|jobs|runs|timers|executors|login|docs|password|invitations|settings\/tenants)/.test(path))).toEqual([])
  expect(isBound({ user: { executors: ['shop'] } } as unknown as Login)).toBe(true)
  expect(isBound({ user: { executors: [] } } as unknown as Login)).toBe(false)
})

describe('words of an address that a page does not know', () => {
  const known: Record<string, string> = { cursor: 'c1', q: 'pay', over: '1', gone: '1' }
  const pages = Object.values(router.routesByPath).filter((one) => one.options.validateSearch)
  test('lists are among the pages', () => {
    for (const path of ['/jobs', '/runs', '/jobs/$jobId/runs', '/timers', '/executors', '/executors/instances', '/alerts', '/settings/notifications/deliveries', '/calendars', '/settings/integrations/scripts', '/settings/integrations/connections', '/settings/tenants']) {
      expect(pages.map((one) => one.fullPath)).toContain(path)
    }
  })
  test.each(pages.map((one) => one.fullPath as string))('%s drops them, and what is malformed', (path) => {
    const given = { ...known, utm_source: 'mail', tab: 'waiting', state: 'no-such-state', range: 'ever' }
    const search = router.matchRoutes(path.replace(/\$\w+/g, '12'), given, {}).at(-1)?.search as Record<string, unknown>
    const kept = Object.entries(search).filter(([, value]) => value !== undefined)
    expect(kept.filter(([key, value]) => known[key] !== value)).toEqual([])
  })
  test('a tab of a job keeps the words of its page', () => {
    const search = router.matchRoutes('/jobs/12/runs', { why: 'last', state: 'failed', x: '1' }, {}).at(-1)?.search as Record<string, unknown>
    expect(JSON.stringify(search)).toBe(JSON.stringify({ why: 'last', state: 'failed' }))
  })
})

describe('who may see a page', () => {
  const pages = Object.values(router.routesByPath)
  test('every page is in the table', () => {
    expect(pages.length).toBeGreaterThan(25)
    for (const path of [...Object.keys(restricted), ...open]) expect(pages.map((one) => one.fullPath)).toContain(path)
  })
  test.each(pages.map((one) => [one.fullPath, one.options.staticData?.needs] as const))('%s', (path, needs) => {
    if (path === '/') return expect(needs).toBe('anyone') // it leads to the overview
    const want = restricted[path] ?? (open.includes(path) ? 'anyone' : 'viewer')
    expect(needs).toBe(want)
    for (const role of roles) {
      const least = want === 'anyone' ? 'viewer' : want
      expect(allows(session(role), want)).toBe(least !== 'platform' && roles.indexOf(role) >= roles.indexOf(least))
    }
    expect(allows(session('admin', true), want)).toBe(true)
  })
})
