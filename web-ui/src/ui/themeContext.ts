// Light or dark: the person's choice, or the system's as it changes.
import { createContext, useContext, useEffect, useState } from 'react'
import { loadTheme, saveTheme, type ThemeChoice } from '../lib/prefs'

export type Mode = 'light' | 'dark'

export interface ThemeState {
  choice: ThemeChoice
  mode: Mode
  /** The person asked for less motion. */
  calm: boolean
  setChoice: (choice: ThemeChoice) => void
}

export const ThemeContext = createContext<ThemeState>({ choice: 'system', mode: 'light', calm: false, setChoice: () => {} })

export const useTheme = () => useContext(ThemeContext)
export const useThemeMode = () => useContext(ThemeContext).mode

function useMedia(text: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(text).matches)
  useEffect(() => {
    const query = matchMedia(text)
    const listen = (event: MediaQueryListEvent) => setMatches(event.matches)
    query.addEventListener('change', listen)
    return () => query.removeEventListener('change', listen)
  }, [text])
  return matches
}

export function useThemeState(): ThemeState {
  const [choice, setStored] = useState(loadTheme)
  const systemDark = useMedia('(prefers-color-scheme: dark)')
  const calm = useMedia('(prefers-reduced-motion: reduce)')
  const mode: Mode = choice === 'system' ? (systemDark ? 'dark' : 'light') : choice
  useEffect(() => {
    document.documentElement.dataset.theme = mode
    // Set by boot.js for the first paint; from here the style sheet rules.
    document.documentElement.style.background = ''
  }, [mode])
  const setChoice = (next: ThemeChoice) => {
    saveTheme(next)
    setStored(next)
  }
  return { choice, mode, calm, setChoice }
}
