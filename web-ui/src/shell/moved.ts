// Addresses of earlier versions. Links in messages and bookmarks lead on to the page of today.
const MOVED: [RegExp, string][] = [
  [/^\/alerts\/(rules|channels|silences|deliveries)(?=\/|$)/, '/settings/notifications/$1'],
  [/^\/(connections|scripts)(?=\/|$)/, '/settings/integrations/$1'],
  [/^\/(limits|cluster)$/, '/settings/$1'],
  [/^\/settings\/(users|api-keys)$/, '/settings/people/$1'],
  [/^\/settings\/notifications$/, '/settings/notifications/rules'],
  [/^\/settings\/integrations$/, '/settings/integrations/connections'],
  [/^\/settings\/people$/, '/settings/people/users'],
  [/^\/jobs\/proposals$/, '/jobs?proposed=1'],
  [/^\/jobs\/([^/]+)\/(?:history|revisions)$/, '/jobs/$1/changes'],
  [/^\/jobs\/([^/]+)\/backfills$/, '/jobs/$1/runs'],
  [/^\/jobs\/([^/]+)\/why$/, '/jobs/$1?why=last'],
]

/** The address of today for an address without tenant and base. Undefined: it has not moved. */
export function movedTo(path: string, search: string): { path: string; search: string } | undefined {
  const move = MOVED.find(([was]) => was.test(path))
  if (!move) return undefined
  const [to = '', added] = path.replace(...move).split('?')
  const params = new URLSearchParams(added ?? search)
  const at = new URLSearchParams(search).get('at')
  if (params.has('why') && at) params.set('why', at)
  return { path: to, search: params.size > 0 ? `?${params}` : '' }
}
