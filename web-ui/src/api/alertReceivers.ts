// Rules and default channels of alerts. The form of a job needs them too, and loads nothing else
// of the pages of alerts. The keys begin with "alerts" as theirs do.
import { http, take } from './client'
import { list, SLOW_MS } from './queries'

export const alertReceivers = {
  rules: () => list(['alerts', 'rules'], (signal) => take(http.GET('/api/v1/alert-rules', { params: { query: { limit: 200 } }, signal })), SLOW_MS),
  settings: () => list(['alerts', 'settings'], (signal) => take(http.GET('/api/v1/alert-settings', { signal })), SLOW_MS),
}
