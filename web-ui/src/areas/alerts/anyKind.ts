import type { TFunction } from 'i18next'
import type { AlertRuleSpec } from '../../api/types'
import { looks } from './alertForm'

/** What a rule is about that names no kind; one that looks by itself is about one. */
export function anyKind(rule: Pick<AlertRuleSpec, 'condition'>, t: TFunction): string | undefined {
  return looks(rule.condition.kind) ? undefined : t('alerts.rules.anyKind')
}
