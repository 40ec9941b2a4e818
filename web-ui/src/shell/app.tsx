import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { ConfigProvider } from 'antd'
import { useEffect, useMemo, useState, type ComponentType } from 'react'
import { useTranslation } from 'react-i18next'
import { queryClient } from '../api/queries'
import { ThemeContext, useThemeState } from '../ui/themeContext'
import { antdLocale } from '../i18n'
import { loadChunk } from '../lib/chunk'
import { reportOutdated } from '../lib/connection'
import { router } from './router'
import { antdTheme } from './theme'

/** Not part of the first paint; not much later either, because an error is to be shown without network. */
function LateNotices() {
  const [Holder, setHolder] = useState<ComponentType>()
  useEffect(() => {
    // Without it nothing can be asked or said: only a reload helps.
    loadChunk(() => import('./NoticesHolder')).then((chunk) => setHolder(() => chunk.NoticesHolder), reportOutdated)
  }, [])
  return Holder && <Holder />
}

export function CarillonApp() {
  const theme = useThemeState()
  const { i18n } = useTranslation()
  const config = useMemo(() => antdTheme(theme.mode, theme.calm), [theme.mode, theme.calm])
  return (
    <ThemeContext.Provider value={theme}>
      <ConfigProvider theme={config} locale={antdLocale(i18n.language)} button={{ autoInsertSpace: false }}>
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
        </QueryClientProvider>
        <LateNotices />
      </ConfigProvider>
    </ThemeContext.Provider>
  )
}
