// Who is told of failures beside the receivers of a job. The keys begin with "alerts", as those of the pages of alerts do.
import { http, take } from './client'
import { list, SLOW_MS } from './queries'

export const alertReceivers = {
  rules: () => list(['alerts', 'rules'], (signal) => take(http.GET('/api/v1/alert-rules', { params: { query: { limit: 200 } }, signal })), SLOW_MS),
  settings: () => list(['alerts', 'settings'], (signal) => take(http.GET('/api/v1/alert-settings', { signal })), SLOW_MS),
}
