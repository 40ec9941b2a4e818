// The list of pages, and the accessibility test of each page.
import assert from 'node:assert/strict'
import { axe, shot } from './browser.mjs'
import { go, made, page, test } from './world.mjs'

export const PAGES = ['/overview', '/jobs', '/jobs/new', '/jobs?proposed=1', '/jobs?deleted=1', '/runs', '/timers', '/executors', '/executors?view=table', '/executors?view=deleted', '/executors/instances', '/calendars', '/calendars/new', '/settings/integrations/scripts', '/settings/integrations/scripts/new', '/settings/integrations/connections', '/settings/integrations/connections/new', '/settings/limits', '/alerts', '/alerts?state=all', '/settings/notifications/rules', '/settings/notifications/rules/new', '/settings/notifications/channels', '/settings/notifications/channels/new', '/settings/notifications/silences', '/settings/notifications/deliveries', '/settings/cluster', '/settings/people/users', '/settings/people/api-keys', '/settings/tenants', '/invitations']
/** The pages of objects that earlier steps made. An object that no step made has none. */
export const own = () => [
  ...of(made.job, '', '?why=2020-01-01T00:00:00.000Z'),
  ...[made.run, made.calendar, made.script, made.connection, made.executor, made.incident, made.rule, made.channel].flatMap((address) => of(address, '')),
]
/** Pages of these objects with a form or a list of changes. */
export const edits = () => [...of(made.job, '/changes', '/edit'), ...[made.calendar, made.script, made.connection].flatMap((address) => of(address, '/edit'))]
const of = (address, ...parts) => (address ? parts.map((part) => address + part) : [])

/** "/jobs/73…/changes" → "-jobs-id-changes": the same name in every run. */
export const nameOf = (path) => path.replace(/\?why=.*/, '-why').replace(/\d+/g, 'id').replace(/[/?=]/g, '-')

export const axeTest = (theme) =>
  test(`every page is free of axe violations: ${theme}`, async () => {
    await page.evaluate((value) => localStorage.setItem('carillon.theme', value), theme)
    for (const path of [...PAGES, ...own(), ...edits()]) {
      await go(path)
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme)
      assert.deepEqual(await axe(page), [], path)
      await shot(page, `${theme}${nameOf(path)}`)
    }
  })
