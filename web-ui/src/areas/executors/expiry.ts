import { useTranslation } from 'react-i18next'

const DAY_MS = 86_400_000

/** The moment so many days from now; undefined for no end. */
export function expiryIn(days: number): string | undefined {
  return days > 0 ? new Date(Date.now() + days * DAY_MS).toISOString() : undefined
}

export function useExpiryOptions() {
  const { t } = useTranslation()
  return [
    { value: 1, label: t('tokens.day') },
    { value: 30, label: t('tokens.month') },
    { value: 365, label: t('tokens.year') },
    { value: 0, label: t('tokens.forever') },
  ]
}
