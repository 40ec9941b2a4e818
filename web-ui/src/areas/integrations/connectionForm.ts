// Between a connection and its form: what the API writes, what the fields hold.
import type { Broker, Connection, ConnectionWrite, Mechanism, MessageTest } from '../../api/types'

/** Those that a broker knows, its default first. */
export const MECHANISMS: Record<Broker, Mechanism[]> = {
  nats: ['password', 'credentials'],
  rabbitmq: ['password', 'external'],
  kafka: ['password', 'scram_sha_256', 'scram_sha_512'],
  redis: ['password'],
}
export const BROKERS = Object.keys(MECHANISMS) as Broker[]
export const EXAMPLE_ADDRESS: Record<Broker, string> = { nats: 'nats.example.com:4222', rabbitmq: 'mq.example.com:5671', kafka: 'kafka.example.com:9093', redis: 'redis.example.com:6380' }

export interface ConnectionFields {
  name: string
  description: string
  broker: Broker
  /** A line each. */
  addresses: string
  username: string
  mechanism: Mechanism
  /** Empty: as it is. */
  password: string
  clientKey: string
  noPassword: boolean
  noClientKey: boolean
  tls: { enabled: boolean; serverName: string; authorities: string; certificate: string }
  virtualHost: string
  database: number | null
  sentinelMaster: string
}

export function connectionFieldsOf(stored?: Connection): ConnectionFields {
  const spec = stored?.spec
  return {
    name: stored?.name ?? '',
    description: spec?.description ?? '',
    broker: spec?.broker ?? 'nats',
    addresses: spec?.addresses.join('\n') ?? '',
    username: spec?.username ?? '',
    mechanism: spec?.mechanism ?? 'password',
    password: '',
    clientKey: '',
    noPassword: false,
    noClientKey: false,
    tls: { enabled: spec?.tls?.enabled ?? !stored, serverName: spec?.tls?.serverName ?? '', authorities: spec?.tls?.authorities ?? '', certificate: spec?.tls?.certificate ?? '' },
    virtualHost: spec?.virtualHost ?? '/',
    database: spec?.database ?? null,
    sentinelMaster: spec?.sentinelMaster ?? '',
  }
}

export const linesOf = (text: string): string[] => text.split(/[\n,]/).map((line) => line.trim()).filter(Boolean)

/** What does not belong to the broker, the login or an encrypted connection is left out, whatever the fields held before. */
export function connectionWriteOf(fields: ConnectionFields, labels?: Connection['labels']): ConnectionWrite {
  const { broker, tls } = fields
  const mechanism = MECHANISMS[broker].includes(fields.mechanism) ? fields.mechanism : 'password'
  const named = mechanism !== 'credentials' && mechanism !== 'external'
  return {
    name: fields.name.trim(),
    ...(labels ? { labels } : {}),
    spec: {
      description: fields.description.trim(),
      broker,
      addresses: linesOf(fields.addresses),
      username: named ? fields.username.trim() : '',
      mechanism,
      ...(tls.enabled ? { tls: { enabled: true, serverName: tls.serverName.trim(), authorities: tls.authorities.trim(), certificate: tls.certificate.trim() } } : {}),
      ...(broker === 'rabbitmq' ? { virtualHost: fields.virtualHost.trim() || '/' } : {}),
      ...(broker === 'redis' ? { database: fields.database ?? 0, sentinelMaster: fields.sentinelMaster.trim() } : {}),
    },
    secrets: {
      ...secretOf('password', fields.password, fields.noPassword || mechanism === 'external'),
      ...secretOf('clientKey', fields.clientKey, fields.noClientKey || !tls.enabled),
    },
  }
}

/** Left out: as it is; empty: none. */
function secretOf<K extends 'password' | 'clientKey'>(name: K, text: string, none: boolean): Partial<Record<K, string>> {
  if (none) return { [name]: '' } as Record<K, string>
  return text ? ({ [name]: text } as Record<K, string>) : {}
}

export type TargetFields = MessageTest['target']

/** The fields of a message's target that a broker knows. */
export const TARGETS: Record<Broker, { name: Exclude<keyof TargetFields, 'maxLength' | 'create'>; optional?: true }[]> = {
  nats: [{ name: 'subject' }, { name: 'stream', optional: true }],
  rabbitmq: [{ name: 'exchange', optional: true }, { name: 'routingKey', optional: true }],
  kafka: [{ name: 'topic' }, { name: 'partitionKey', optional: true }],
  redis: [{ name: 'stream' }],
}
