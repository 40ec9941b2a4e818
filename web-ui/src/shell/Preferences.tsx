// Language, theme and how times are written, for the top bar and for the pages
// before signing in.
import { BulbOutlined, ClockCircleOutlined, GlobalOutlined } from '@ant-design/icons'
import { useTranslation } from 'react-i18next'
import { setLang } from '../i18n'
import type { Lang, ThemeChoice, TimeStyle } from '../lib/prefs'
import { useLang } from '../ui/hooks'
import { MenuButton } from '../ui/MenuButton'
import { useTheme } from '../ui/themeContext'
import { setTimeStyle, useTimeStyle } from '../ui/timeStyle'

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

export function TimesMenu() {
  const { t } = useTranslation()
  const style = useTimeStyle()
  const styles: TimeStyle[] = ['relative', 'local', 'utc']
  return (
    <MenuButton
      button={{ icon: <ClockCircleOutlined />, 'aria-label': t('user.times'), title: t('user.times') }}
      menu={{
        selectable: true,
        selectedKeys: [style],
        items: styles.map((key) => ({ key, label: t(`user.times_${key}`) })),
        onClick: ({ key }) => setTimeStyle(key as TimeStyle),
      }}
    />
  )
}
