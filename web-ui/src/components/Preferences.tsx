// Language and theme, for the top bar and for the pages before signing in.
import { BulbOutlined, GlobalOutlined } from '@ant-design/icons'
import { useTranslation } from 'react-i18next'
import { setLang } from '../i18n'
import type { Lang, ThemeChoice } from '../lib/prefs'
import { useLang } from './hooks'
import { MenuButton } from './MenuButton'
import { useTheme } from './themeContext'

export function LanguageMenu() {
  const { t } = useTranslation()
  const lang = useLang()
  return (
    <MenuButton
      button={{ icon: <GlobalOutlined />, 'aria-label': t('user.language'), title: t('user.language') }}
      menu={{
        selectable: true,
        selectedKeys: [lang],
        items: [
          // Each language is named in itself, so that its speakers find it.
          { key: 'en', label: <span lang="en">English</span> },
          { key: 'zh', label: <span lang="zh">中文</span> },
        ],
        onClick: ({ key }) => void setLang(key as Lang),
      }}
    />
  )
}

export function ThemeMenu() {
  const { t } = useTranslation()
  const { choice, setChoice } = useTheme()
  const choices: ThemeChoice[] = ['system', 'light', 'dark']
  return (
    <MenuButton
      button={{ icon: <BulbOutlined />, 'aria-label': t('user.theme'), title: t('user.theme') }}
      menu={{
        selectable: true,
        selectedKeys: [choice],
        items: choices.map((key) => ({ key, label: t(`user.${key}`) })),
        onClick: ({ key }) => setChoice(key as ThemeChoice),
      }}
    />
  )
}
