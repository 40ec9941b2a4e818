import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { en } from '../src/i18n/en'
import { zh } from '../src/i18n/zh'

type Tree = { [key: string]: string | Tree }

function leaves(tree: Tree, prefix = ''): [string, string][] {
  return Object.entries(tree).flatMap(([key, value]) =>
    typeof value === 'string' ? [[prefix + key, value] as [string, string]] : leaves(value, `${prefix}${key}.`),
  )
}

const english = new Map(leaves(en as Tree))
const chinese = new Map(leaves(zh as Tree))
const CJK = /[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]/
const placeholders = (text: string) => [...text.matchAll(/\{\{(\w+)/g)].map((m) => m[1]).sort()

// Words and names of products which are the same in both languages.
const SAME = new Set(['Cron', 'Quartz', 'UTC', 'API', 'SDK', 'Webhook', 'Slack', 'Microsoft Teams', 'Telegram', 'PagerDuty', 'Opsgenie'])

function sources(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name)
    if (entry.isDirectory()) return entry.name === 'i18n' ? [] : sources(path)
    return /\.tsx?$/.test(entry.name) ? [readFileSync(path, 'utf8')] : []
  })
}

describe('texts', () => {
  it('has the same keys in both languages', () => {
    expect([...chinese.keys()].sort()).toEqual([...english.keys()].sort())
  })

  it('has no empty text', () => {
    for (const [key, text] of [...english, ...chinese]) expect(text.trim(), key).not.toBe('')
  })

  it('has no Chinese in English', () => {
    for (const [key, text] of english) expect(CJK.test(text), `${key}: ${text}`).toBe(false)
  })

  it('has no English sentence in Chinese', () => {
    for (const [key, text] of chinese) {
      if (SAME.has(text) || /^[\W\d]*(\{\{\w+\}\}[\W\d]*)+(ms|s|m|h|d)?$/.test(text)) continue
      expect(CJK.test(text), `${key}: ${text}`).toBe(true)
    }
  })

  it('fills the same places in both languages', () => {
    for (const [key, text] of english) {
      // A plural form may leave its number out in one of them.
      expect(placeholders(chinese.get(key) ?? ''), key).toEqual(placeholders(text))
    }
  })

  it('has a text for every key that the sources name', () => {
    const named = new Set(sources('src').flatMap((text) => [...text.matchAll(/\bt\('([\w.]+)'/g)].map((m) => m[1] ?? '')))
    expect(named.size).toBeGreaterThan(150)
    for (const key of named) expect(english.has(key) || english.has(`${key}_other`), key).toBe(true)
  })
})
