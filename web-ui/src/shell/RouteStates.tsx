import { Link, useRouter, type ErrorComponentProps } from '@tanstack/react-router'
import { Button } from 'antd'
import { createContext, useContext, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { ChunkError } from '../lib/chunk'
import { useConnection, useDocumentTitle } from '../ui/hooks'
import { Blank, ErrorState, PageSkeleton } from '../ui/States'

/** Whether this stands inside the shell, which has the <main>. */
export const InShell = createContext(false)

export function NotFoundPage() {
  const { t } = useTranslation()
  useDocumentTitle(t('notFound.title'))
  return (
    <Content>
      <Blank title={t('notFound.title')} help={t('notFound.help')}>
        <Link to="/overview">{t('notFound.home')}</Link>
      </Blank>
    </Content>
  )
}

/** The page's one landmark: the shell has it, and the pages outside of it do not. */
function Content({ children }: { children: ReactNode }) {
  return useContext(InShell) ? children : <main className="main">{children}</main>
}

export function RouteError({ error, reset }: ErrorComponentProps) {
  const { t } = useTranslation()
  const router = useRouter()
  const again = () => {
    // Some browsers remember a failed import for as long as the page is open.
    if (error instanceof ChunkError) return location.reload()
    reset()
    void router.invalidate()
  }
  return (
    <Content>
      <ErrorState error={error} title={t('errors.page')} onRetry={again} />
    </Content>
  )
}

/** While the chunk of a page is under way: it comes when the server is back, or not at all after an upgrade. */
export function RoutePending() {
  const { t } = useTranslation()
  if (!useConnection().outdated) return <PageSkeleton />
  return (
    <Blank title={t('connection.newVersion')} help={t('connection.newVersionHelp')}>
      <Button type="primary" onClick={() => location.reload()}>
        {t('connection.reloadNow')}
      </Button>
    </Blank>
  )
}
