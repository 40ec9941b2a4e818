import type { Rule } from 'antd/es/form'
import { useTranslation } from 'react-i18next'

/** What the server takes as a name of a user; it makes small letters of capital ones. */
const NAME = /^[a-z0-9][a-z0-9._@+-]{0,63}$/i

export function useUserNameRules(): Rule[] {
  const { t } = useTranslation()
  return [
    { required: true, whitespace: true, message: t('field.required') },
    { transform: (name: string) => name.trim(), pattern: NAME, message: t('users.nameRule') },
  ]
}
