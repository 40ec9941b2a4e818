// Between rules and channels and their forms: what the API writes, what the fields hold.
import type { TFunction } from 'i18next'
import type { AlertChannel, AlertChannelWrite, AlertRule, AlertRuleMatch, AlertRuleSpec, ChannelKind } from '../../api/types'
import { linesOf } from '../integrations/connectionForm'

export type ConditionKind = AlertRuleSpec['condition']['kind']
export const CONDITIONS: ConditionKind[] = ['events', 'failures', 'keyword', 'late', 'long', 'absent']
export const SEVERITIES = ['info', 'warning', 'critical'] as const

/** Conditions that look by themselves; their events have a kind of their own. */
export const looks = (kind: ConditionKind | undefined): boolean => kind === 'late' || kind === 'long' || kind === 'absent'

/** What a rule is about that names no kind; one that looks by itself is about one. */
export const anyKind = (rule: Pick<AlertRuleSpec, 'condition'>, t: TFunction): string | undefined => (looks(rule.condition.kind) ? undefined : t('alerts.rules.anyKind'))

export interface RuleFields {
  name: string
  description: string
  enabled: boolean
  position: number | null
  match?: AlertRuleMatch
  condition: { kind: ConditionKind; failures?: number | null; of?: number | null; keyword?: string; after?: string; factor?: number | null }
  severity: (typeof SEVERITIES)[number]
  mute: boolean
  channels: string[]
  repeat: string
  escalateAfter: string
  escalateTo: string[]
}

export function ruleFieldsOf(stored?: AlertRule): RuleFields {
  const spec = stored?.spec
  return {
    name: stored?.name ?? '',
    description: spec?.description ?? '',
    enabled: spec?.enabled ?? true,
    position: spec?.position ?? 0,
    match: spec?.match ?? {},
    condition: { failures: 3, of: 5, after: '5m', ...spec?.condition, kind: spec?.condition.kind ?? 'events' },
    severity: spec?.severity ?? 'warning',
    mute: spec?.mute ?? false,
    channels: spec?.channels ?? [],
    repeat: spec?.repeat ?? '',
    escalateAfter: spec?.escalateAfter ?? '',
    escalateTo: spec?.escalateTo ?? [],
  }
}

/** The order in which rules decide; of the same position the older one comes first. */
export const inOrder = (rules: AlertRule[]): AlertRule[] =>
  rules.toSorted((a, b) => (a.spec.position ?? 0) - (b.spec.position ?? 0) || a.id.length - b.id.length || (a.id < b.id ? -1 : 1))

function conditionOf({ kind, failures, of, keyword, after, factor }: RuleFields['condition']): AlertRuleSpec['condition'] {
  if (kind === 'failures') return { kind, failures: failures ?? 0, of: of ?? 0 }
  if (kind === 'keyword') return { kind, keyword: keyword?.trim() ?? '' }
  if (!looks(kind)) return { kind }
  return { kind, after: after?.trim() ?? '', ...(kind === 'long' && factor ? { factor } : {}) }
}

/** What does not belong to the condition, or to a rule that tells nobody, is left out, whatever the fields held before. */
export function ruleSpecOf(fields: RuleFields): Omit<AlertRuleSpec, 'match' | 'quietHours'> {
  const { mute } = fields
  return {
    description: fields.description.trim(),
    enabled: fields.enabled,
    position: fields.position ?? 0,
    condition: conditionOf(fields.condition),
    severity: fields.severity,
    mute,
    ...(mute ? {} : { channels: fields.channels, repeat: fields.repeat.trim(), escalateAfter: fields.escalateAfter.trim(), escalateTo: fields.escalateTo }),
  }
}

interface Traits {
  url?: true
  emails?: true
  secret?: true
  /** The word for it. */
  token?: 'botToken' | 'routingKey' | 'apiKey' | 'bearer'
  baseUrl?: true
  chat?: true
  mentions?: true
  templates: ('title' | 'text' | 'html' | 'body')[]
}

/** What each kind has; the server refuses the rest. */
export const TRAITS: Record<ChannelKind, Traits> = {
  email: { emails: true, templates: ['title', 'text', 'html'] },
  webhook: { url: true, secret: true, token: 'bearer', templates: ['body'] },
  dingtalk: { url: true, secret: true, mentions: true, templates: ['title', 'text'] },
  feishu: { url: true, secret: true, mentions: true, templates: ['title', 'text'] },
  wecom: { url: true, mentions: true, templates: ['title', 'text'] },
  slack: { url: true, mentions: true, templates: ['title', 'text'] },
  teams: { url: true, templates: ['title', 'text'] },
  telegram: { token: 'botToken', baseUrl: true, chat: true, templates: ['title', 'text'] },
  pagerduty: { token: 'routingKey', baseUrl: true, templates: ['title', 'text'] },
  opsgenie: { token: 'apiKey', baseUrl: true, templates: ['title', 'text'] },
}
export const CHANNEL_KINDS = Object.keys(TRAITS) as ChannelKind[]

export interface ChannelFields {
  name: string
  description: string
  kind: ChannelKind
  enabled: boolean
  language: 'en' | 'zh' | ''
  /** Empty: as it is. */
  url: string
  secret: string
  token: string
  noSecret: boolean
  noToken: boolean
  /** A line each. */
  emails: string
  mentions: string
  mentionAll: boolean
  baseUrl: string
  chatId: string
  threadId: number | null
  templates: NonNullable<AlertChannel['spec']['templates']>
}

export function channelFieldsOf(stored?: AlertChannel): ChannelFields {
  const spec = stored?.spec
  return {
    name: stored?.name ?? '',
    description: spec?.description ?? '',
    kind: spec?.kind ?? 'email',
    enabled: spec?.enabled ?? true,
    language: spec?.language ?? '',
    url: '',
    secret: '',
    token: '',
    noSecret: false,
    noToken: false,
    emails: spec?.emails?.join('\n') ?? '',
    mentions: spec?.mentions?.join('\n') ?? '',
    mentionAll: spec?.mentionAll ?? false,
    baseUrl: spec?.baseUrl ?? '',
    chatId: spec?.chatId ?? '',
    threadId: spec?.threadId ?? null,
    templates: spec?.templates ?? {},
  }
}

/** Only what the kind has, and only what is not empty. */
export function templatesOf({ kind, templates }: Pick<ChannelFields, 'kind' | 'templates'>): ChannelFields['templates'] {
  const has = TRAITS[kind].templates
  const kept = Object.fromEntries(has.flatMap((name) => (templates[name]?.trim() ? [[name, templates[name]]] : [])))
  return { ...kept, ...(kept.body && templates.contentType?.trim() ? { contentType: templates.contentType.trim() } : {}) }
}

export function channelWriteOf(fields: ChannelFields, labels?: AlertChannel['labels']): AlertChannelWrite {
  const traits = TRAITS[fields.kind]
  return {
    name: fields.name.trim(),
    ...(labels ? { labels } : {}),
    spec: {
      description: fields.description.trim(),
      kind: fields.kind,
      enabled: fields.enabled,
      ...(fields.language ? { language: fields.language } : {}),
      ...(traits.emails ? { emails: linesOf(fields.emails) } : {}),
      ...(traits.mentions ? { mentions: linesOf(fields.mentions), mentionAll: fields.mentionAll } : {}),
      ...(traits.baseUrl && fields.baseUrl.trim() ? { baseUrl: fields.baseUrl.trim() } : {}),
      ...(traits.chat ? { chatId: fields.chatId.trim(), ...(fields.threadId ? { threadId: fields.threadId } : {}) } : {}),
      templates: templatesOf(fields),
    },
    secrets: {
      ...(traits.url && fields.url.trim() ? { url: fields.url.trim() } : {}),
      ...(traits.secret ? keyOf('secret', fields.secret, fields.noSecret) : {}),
      ...(traits.token ? keyOf('token', fields.token, fields.noToken) : {}),
    },
  }
}

/** Left out: as it is; empty: none. */
function keyOf<K extends 'secret' | 'token'>(name: K, text: string, none: boolean): Partial<Record<K, string>> {
  if (none) return { [name]: '' } as Record<K, string>
  return text.trim() ? ({ [name]: text.trim() } as Record<K, string>) : {}
}
