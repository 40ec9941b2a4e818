import type { Rule } from 'antd/es/form'
import { useTranslation } from 'react-i18next'

/** What the server takes as a name of an executor. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

export function useNameRules(): Rule[] {
  const { t } = useTranslation()
  return [
    { required: true, whitespace: true, message: t('field.required') },
    { transform: (name: string) => name.trim(), pattern: NAME, message: t('executors.nameRule') },
  ]
}
