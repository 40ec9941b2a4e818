import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

/** Files whose styles are computed: rows of a virtual list, and the colours of a log. */
const COMPUTED = ['src/areas/runs/log/LogLines.tsx']

const files = (dir: string): string[] => readdirSync(dir, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? files(join(dir, entry.name)) : [join(dir, entry.name)]))

it('styles stand in style sheets', () => {
  const sources = files('src').filter((path) => path.endsWith('.tsx'))
  expect(sources.length).toBeGreaterThan(100)
  expect(sources.filter((path) => /\bstyle=\{/.test(readFileSync(path, 'utf8')))).toEqual(COMPUTED)
})
