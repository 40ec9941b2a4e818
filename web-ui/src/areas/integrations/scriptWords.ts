import type { ScriptLanguage } from '../../api/types'

/** Names of their own: the same in all languages of the UI. */
export const SCRIPT_LANGUAGES: Record<ScriptLanguage, string> = {
  shell: 'Shell',
  python: 'Python',
  node: 'Node.js',
  php: 'PHP',
  powershell: 'PowerShell',
}

export const languageOptions = Object.entries(SCRIPT_LANGUAGES).map(([value, label]) => ({ value: value as ScriptLanguage, label }))
