// Languages. Only the one in use is loaded; switching needs no reload. The
// Chinese texts are typed by the English ones, so a missing key does not
// compile; test/i18n.test.ts checks what types cannot.
import dayjs from 'dayjs'
import i18next from 'i18next'
import type { Locale } from 'antd/es/locale'
import { initReactI18next } from 'react-i18next'
import { loadLang, saveLang, type Lang } from '../lib/prefs'
import type { Texts } from './en'

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'translation'
    resources: { translation: Texts }
    returnNull: false
  }
}

interface Pack {
  texts: Texts
  antd: Locale
}

const loaders: Record<Lang, () => Promise<Pack>> = {
  async en() {
    const [texts, antd] = await Promise.all([import('./en'), import('antd/es/locale/en_US')])
    return { texts: texts.en, antd: antd.default }
  },
  async zh() {
    const [texts, antd] = await Promise.all([import('./zh'), import('antd/es/locale/zh_CN'), import('dayjs/locale/zh-cn')])
    return { texts: texts.zh, antd: antd.default }
  },
}

const packs: Partial<Record<Lang, Pack>> = {}

async function load(lang: Lang): Promise<void> {
  const pack = (packs[lang] ??= await loaders[lang]())
  i18next.addResourceBundle(lang, 'translation', pack.texts, true, true)
}

export async function startI18n(): Promise<void> {
  const lang = loadLang()
  await i18next.use(initReactI18next).init({
    lng: lang,
    fallbackLng: false,
    resources: {},
    interpolation: { escapeValue: false },
  })
  await load(lang)
  apply(lang)
}

export async function setLang(lang: Lang): Promise<void> {
  await load(lang)
  saveLang(lang)
  apply(lang)
  await i18next.changeLanguage(lang)
}

export function antdLocale(lang: string): Locale | undefined {
  return packs[lang as Lang]?.antd
}

function apply(lang: Lang): void {
  document.documentElement.lang = lang
  dayjs.locale(lang === 'zh' ? 'zh-cn' : 'en')
}
