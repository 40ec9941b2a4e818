// The tenant in addresses: /t/<tenant>/jobs. The routes do not know of it. A link without a
// tenant leads to the tenant of the session.
import { getSession } from '../api/session'
import { basePath } from '../lib/base'
import { movedTo } from './moved'

const WITH_TENANT = /^\/t\/([^/?#]+)(?=[/?#]|$)/
const OUTSIDE = /^\/(login|password|docs)(?=[/?#]|$)/

/** Splits an address, without the host and the base, into its tenant and the rest. */
export function splitTenant(address: string): { tenant?: string; rest: string } {
  const found = WITH_TENANT.exec(address)
  if (!found) return { rest: address }
  const rest = address.slice(found[0].length)
  return { tenant: decodeURIComponent(found[1]!), rest: rest.startsWith('/') ? rest : `/${rest}` }
}

/** The tenant that the address bar names. */
export const tenantOfAddress = (publicHref: string): string | undefined => splitTenant(publicHref.slice(basePath.length)).tenant

/** The address of a page in a tenant, with the base. Some pages are outside of each tenant. */
export function inTenant(rest: string, tenant: string | undefined): string {
  return basePath + (tenant && !OUTSIDE.test(rest) ? `/t/${encodeURIComponent(tenant)}` : '') + rest
}

// While nobody has signed in, an address keeps the tenant that it names.
let named: string | undefined

/** For the router. The base is removed before and added afterwards. */
export const rewrite = {
  input: ({ url }: { url: URL }) => {
    const { tenant, rest } = splitTenant(url.pathname)
    named = tenant
    const today = movedTo(rest, url.search)
    url.pathname = today?.path ?? rest
    if (today) url.search = today.search
    return url
  },
  output: ({ url }: { url: URL }) => {
    url.pathname = inTenant(url.pathname, getSession()?.tenant.name ?? named).slice(basePath.length)
    return url
  },
}
