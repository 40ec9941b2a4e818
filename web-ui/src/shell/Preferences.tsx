// Language, theme and how times are written, for the top bar and for the pages
// before signing in.
import { BulbOutlined, ClockCircleOutlined, GlobalOutlined } from '@ant-design/icons'
import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../api/endpoints'
import { getSession } from '../api/session'
import { setLang } from '../i18n'
import { chosen, type Lang, type ThemeChoice, type TimeStyle } from '../lib/prefs'
import { useLang, useSession } from '../ui/hooks'
import { MenuButton } from '../ui/MenuButton'
import { useTheme } from '../ui/themeContext'
import { setTimeStyle, useTimeStyle } from '../ui/timeStyle'

/** Keeps what was chosen in this browser for the account, too. A failure loses nothing here, so it is not told. */
function keep(): void {
  if (getSession()) void api.setPreferences(chosen()).catch(() => {})
}

/** The user whose choices this tab has taken over. Later choices of this tab are newer than those of its session. */
let taken = ''

/** Takes over what the user chose on another machine, once after the sign-in or a reload. */
export function useOwnPreferences(): void {
  const user = useSession()?.user
  const { setChoice } = useTheme()
  useEffect(() => {
    if (!user || taken === user.id) return
    taken = user.id
    const { language, theme, times } = user.preferences
    const here = chosen()
    if (language && language !== here.language) void setLang(language)
    if (theme && theme !== here.theme) setChoice(theme)
    if (times && times !== here.times) setTimeStyle(times)
  }, [user, setChoice])
}

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
        onClick: ({ key }) => void setLang(key as Lang).then(keep),
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
        onClick: ({ key }) => {
          setChoice(key as ThemeChoice)
          keep()
        },
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
        onClick: ({ key }) => {
          setTimeStyle(key as TimeStyle)
          keep()
        },
      }}
    />
  )
}
