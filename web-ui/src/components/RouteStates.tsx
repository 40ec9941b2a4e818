import { Link, useRouter, type ErrorComponentProps } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { useDocumentTitle } from './hooks'
import { Blank, ErrorState } from './States'

export function NotFoundPage() {
  const { t } = useTranslation()
  useDocumentTitle(t('notFound.title'))
  return (
    <main className="main">
      <Blank title={t('notFound.title')} help={t('notFound.help')}>
        <Link to="/overview">{t('notFound.home')}</Link>
      </Blank>
    </main>
  )
}

export function RouteError({ error, reset }: ErrorComponentProps) {
  const { t } = useTranslation()
  const router = useRouter()
  const again = () => {
    reset()
    void router.invalidate()
  }
  return (
    <main className="main">
      <ErrorState error={error} title={t('errors.page')} onRetry={again} />
    </main>
  )
}
