// What every page needs before it shows anything: index.html, what it names,
// and what those import at once. It must not grow without somebody noticing.
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const LIMIT_KB = 260

/** The files of the shell, as paths below dist. */
function shellOf(dist) {
  const read = (path) => readFileSync(dist + path, 'utf8')
  const open = [...read('index.html').matchAll(/(?:src|href)="\/(assets\/[^"]+|boot\.js)"/g)].map((m) => m[1])
  const files = new Set(['index.html'])
  for (let path = open.pop(); path; path = open.pop()) {
    if (files.has(path)) continue
    files.add(path)
    if (path.endsWith('.js')) open.push(...[...read(path).matchAll(/(?:import|from)\s*["'`]\.\/([\w.-]+\.js)["'`]/g)].map((m) => `assets/${m[1]}`))
  }
  return files
}

/** Prints the size of the shell; false when it is over its budget. */
export function checkShell(dist) {
  const files = shellOf(dist)
  const kb = [...files].reduce((sum, path) => sum + gzipSync(readFileSync(dist + path), { level: 9 }).length, 0) / 1024
  console.log(`shell: ${kb.toFixed(1)} kB gz in ${files.size} files, of at most ${LIMIT_KB}`)
  return kb <= LIMIT_KB
}
