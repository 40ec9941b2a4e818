import { afterEach, describe, expect, it } from 'vitest'
import { resetSession, setSession } from '../src/api/session'
import type { Login } from '../src/api/types'
import { inTenant, rewrite, splitTenant } from '../src/shell/tenantPath'

const at = (path: string) => new URL(path, 'https://jobs.example')
const signIn = (name: string) => setSession({ tenant: { id: '1', name } } as Login)

afterEach(resetSession)

describe('the tenant in addresses', () => {
  it('is apart from the rest', () => {
    expect(splitTenant('/t/acme/jobs/12?x=1#L3')).toEqual({ tenant: 'acme', rest: '/jobs/12?x=1#L3' })
    expect(splitTenant('/t/acme')).toEqual({ tenant: 'acme', rest: '/' })
    expect(splitTenant('/t/acme?x=1')).toEqual({ tenant: 'acme', rest: '/?x=1' })
    expect(splitTenant('/timers')).toEqual({ rest: '/timers' })
    expect(splitTenant('/t/')).toEqual({ rest: '/t/' })
  })

  it('is not in the pages outside of each tenant', () => {
    expect(inTenant('/login?next=%2Fjobs', 'acme')).toBe('/login?next=%2Fjobs')
    expect(inTenant('/docs', 'acme')).toBe('/docs')
    expect(inTenant('/jobs', 'acme')).toBe('/t/acme/jobs')
    expect(inTenant('/jobs', undefined)).toBe('/jobs')
  })

  it('is the one of the session, and before that the one of the address', () => {
    expect(rewrite.input({ url: at('/t/acme/jobs?q=a') }).href).toBe('https://jobs.example/jobs?q=a')
    expect(rewrite.output({ url: at('/jobs?q=a') }).href).toBe('https://jobs.example/t/acme/jobs?q=a')
    signIn('beta')
    expect(rewrite.output({ url: at('/runs') }).href).toBe('https://jobs.example/t/beta/runs')
    rewrite.input({ url: at('/runs') })
    resetSession()
    expect(rewrite.output({ url: at('/runs') }).href).toBe('https://jobs.example/runs')
  })
})
