// What a person chose for this browser. public/boot.js reads the same keys
// before the first paint.
export type ThemeChoice = 'light' | 'dark' | 'system'
export type Lang = 'en' | 'zh'
/** How instants are written: how far away, in local time, in UTC. */
export type TimeStyle = 'relative' | 'local' | 'utc'

const read = (key: string): string | null => {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

const write = (key: string, value: string): void => {
  try {
    localStorage.setItem(key, value)
  } catch {
    // Forbidden storage: the choice lasts as long as the page.
  }
}

export function loadTheme(): ThemeChoice {
  const value = read('carillon.theme')
  return value === 'light' || value === 'dark' ? value : 'system'
}

export const saveTheme = (theme: ThemeChoice): void => write('carillon.theme', theme)

export function loadLang(): Lang {
  const value = read('carillon.lang')
  if (value === 'en' || value === 'zh') return value
  return /^zh/i.test(navigator.language) ? 'zh' : 'en'
}

export const saveLang = (lang: Lang): void => write('carillon.lang', lang)

export function loadTimeStyle(): TimeStyle {
  const value = read('carillon.times')
  return value === 'local' || value === 'utc' ? value : 'relative'
}

export const saveTimeStyle = (style: TimeStyle): void => write('carillon.times', style)

/** What was chosen in this browser; what was not is left out. */
export const chosen = (): { language?: Lang; theme?: ThemeChoice; times?: TimeStyle } => ({
  ...(read('carillon.lang') && { language: loadLang() }),
  ...(read('carillon.theme') && { theme: loadTheme() }),
  ...(read('carillon.times') && { times: loadTimeStyle() }),
})

export const loadFlag = (key: string, fallback: boolean): boolean => {
  const value = read(`carillon.${key}`)
  return value === null ? fallback : value === '1'
}

export const saveFlag = (key: string, value: boolean): void => write(`carillon.${key}`, value ? '1' : '0')
