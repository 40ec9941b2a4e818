import type { FormInstance } from 'antd'
import { isApiError } from '../api/problem'

/** "body.tls.serverName" → ["tls", "serverName"]; a member of a list speaks of the field which holds the list. */
const pathOf = (location = '') =>
  location
    .replace(/^body\.(?:(?:spec|secrets)\.)?/, "")
    .replace(/\[.*$/, '')
    .split('.')

/** Puts the server's complaints at their fields, those about a group at its first one; false when one has none. */
export function complainAt<T>(form: FormInstance<T>, err: unknown, fieldOf: (path: string[]) => string[] = (path) => path): boolean {
  const items = isApiError(err) ? err.items : []
  const fields = form.getFieldsError().map(({ name }) => name)
  const known = items.flatMap(({ location, message }) => {
    const path = fieldOf(pathOf(location))
    const below = fields.filter((name) => path.every((part, i) => String(name[i]) === part))
    const name = below.find((one) => one.length === path.length) ?? below[0]
    return name ? [{ name: name as never, errors: [message] }] : []
  })
  form.setFields(known)
  if (known[0]) form.scrollToField(known[0].name, { focus: true })
  return items.length > 0 && known.length === items.length
}
