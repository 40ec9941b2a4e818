import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { ConfigProvider } from 'antd'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { queryClient } from '../api/queries'
import { ThemeContext, useThemeState } from '../ui/themeContext'
import { antdLocale } from '../i18n'
import { NoticesHolder } from './NoticesHolder'
import { router } from './router'
import { antdTheme } from './theme'

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
        <NoticesHolder />
      </ConfigProvider>
    </ThemeContext.Provider>
  )
}
