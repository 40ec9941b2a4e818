import { expect, test } from 'vitest'
import { movedTo } from '../src/shell/moved'

test.each([
  ['/alerts/rules', '', '/settings/notifications/rules', ''],
  ['/alerts/channels/7', '', '/settings/notifications/channels/7', ''],
  ['/alerts/deliveries', '?state=failed', '/settings/notifications/deliveries', '?state=failed'],
  ['/connections/new', '', '/settings/integrations/connections/new', ''],
  ['/scripts/5/edit', '', '/settings/integrations/scripts/5/edit', ''],
  ['/cluster', '', '/settings/cluster', ''],
  ['/settings/users', '', '/settings/people/users', ''],
  ['/settings/people', '', '/settings/people/users', ''],
  ['/jobs/proposals', '', '/jobs', '?proposed=1'],
  ['/jobs/12/revisions', '', '/jobs/12/changes', ''],
  ['/jobs/12/history', '?cursor=x', '/jobs/12/changes', '?cursor=x'],
  ['/jobs/12/backfills', '', '/jobs/12/runs', ''],
  ['/jobs/12/why', '', '/jobs/12', '?why=last'],
  ['/jobs/12/why', '?at=2026-11-01T00:00:00.000Z', '/jobs/12', '?why=2026-11-01T00%3A00%3A00.000Z'],
])('%s%s leads on', (path, search, to, then) => {
  expect(movedTo(path, search)).toEqual({ path: to, search: then })
  expect(movedTo(to, then)).toBeUndefined()
})

test.each(['/alerts', '/alerts/incidents/3', '/jobs/12', '/jobs/12/runs', '/settings/notifications/rules', '/overview'])('%s has not moved', (path) => {
  expect(movedTo(path, '')).toBeUndefined()
})
