import './login.css'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Mark } from '../../ui/Mark'
import { useDocumentTitle } from '../../ui/hooks'
import { LanguageMenu, ThemeMenu } from '../../shell/Preferences'

/** The frame of the pages before and beside the shell. */
export function Gate({ title, children }: { title: string; children: ReactNode }) {
  const { t } = useTranslation()
  useDocumentTitle(title)
  return (
    <main className="gate">
      <div className="gate-card stack">
        <div className="row between no-wrap">
          <span className="row no-wrap">
            <span className="flex-none">
              <Mark size={34} />
            </span>
            <span>
              <strong className="big">{t('app.name')}</strong>
              <br />
              <span className="muted small">{t('app.tagline')}</span>
            </span>
          </span>
          <span className="row tight no-wrap">
            <LanguageMenu />
            <ThemeMenu />
          </span>
        </div>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  )
}
