import { describe, expect, it } from 'vitest'
import type { Connection } from '../src/api/types'
import { connectionFieldsOf, connectionWriteOf, TARGETS, type ConnectionFields } from '../src/areas/integrations/connectionForm'

const fields = (change: Partial<ConnectionFields>): ConnectionFields => ({ ...connectionFieldsOf(), name: ' orders ', addresses: 'a:1\n b:2,c:3\n', ...change })

const stored: Connection = {
  apiVersion: 'carillon/v1', kind: 'Connection', id: '7', version: 3, name: 'orders',
  spec: { broker: 'rabbitmq', addresses: ['mq:5671'], username: 'shop', mechanism: 'password', virtualHost: '/shop', tls: { enabled: true, serverName: 'mq.example' } },
  secrets: { password: 'fingerprint:01' },
  createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:00.000Z', createdBy: 'a', updatedBy: 'b',
}

describe('a connection', () => {
  it('is written as it was read, and its secrets stay', () => {
    expect(connectionWriteOf(connectionFieldsOf(stored))).toEqual({
      name: 'orders',
      spec: {
        description: '', broker: 'rabbitmq', addresses: ['mq:5671'], username: 'shop', mechanism: 'password', virtualHost: '/shop',
        tls: { enabled: true, serverName: 'mq.example', authorities: '', certificate: '' },
      },
      secrets: {},
    })
  })

  it('has its addresses a line each', () => {
    expect(connectionWriteOf(fields({}))).toMatchObject({ name: 'orders', spec: { addresses: ['a:1', 'b:2', 'c:3'], tls: { enabled: true } } })
  })

  it('leaves out what its broker does not know', () => {
    const all = { virtualHost: '/v', database: 3, sentinelMaster: 'm' }
    expect(connectionWriteOf(fields({ broker: 'kafka', ...all })).spec).not.toHaveProperty('virtualHost')
    expect(connectionWriteOf(fields({ broker: 'kafka', ...all })).spec).not.toHaveProperty('database')
    expect(connectionWriteOf(fields({ broker: 'redis', ...all })).spec).toMatchObject({ database: 3, sentinelMaster: 'm' })
    expect(connectionWriteOf(fields({ broker: 'redis', mechanism: 'scram_sha_256' })).spec.mechanism).toBe('password')
  })

  it('replaces a secret, keeps it, or takes it away', () => {
    expect(connectionWriteOf(fields({ password: 'new' })).secrets?.password).toBe('new')
    expect(connectionWriteOf(fields({})).secrets).not.toHaveProperty('password')
    expect(connectionWriteOf(fields({ noPassword: true, password: 'typed before' })).secrets?.password).toBe('')
    // A certificate says who it is; without TLS there is none, and no key.
    expect(connectionWriteOf(fields({ broker: 'rabbitmq', mechanism: 'external', username: 'shop', password: 'old' }))).toMatchObject({ spec: { username: '' }, secrets: { password: '' } })
    expect(connectionWriteOf(fields({ tls: { enabled: false, serverName: 'x', authorities: '', certificate: '' }, clientKey: 'k' }))).toMatchObject({ secrets: { clientKey: '' } })
    expect(connectionWriteOf(fields({ tls: { enabled: false, serverName: 'x', authorities: '', certificate: '' } })).spec).not.toHaveProperty('tls')
  })

  it('has a target to try for every broker', () => {
    expect(Object.entries(TARGETS).map(([broker, of]) => [broker, of.map((one) => one.name)])).toEqual([
      ['nats', ['subject', 'stream']],
      ['rabbitmq', ['exchange', 'routingKey']],
      ['kafka', ['topic', 'partitionKey']],
      ['redis', ['stream']],
    ])
  })
})
