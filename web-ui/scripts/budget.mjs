// What a page loads before it shows its data: the shell, the English texts, and the static imports
// of its route. The build fails if a page is too heavy, has too many files, or loads a part of the
// library that it does not need yet.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const SHELL_KB = 250
const PAGE_KB = 350
/** A form with the JSON editor, and that editor. */
const EDITOR_KB = 450
const PAGE_FILES = 30
const CHUNK_BYTES = 1_024

const ROUTER = '/src/shell/router.tsx'
const TEXTS = '/src/i18n/en/index.ts'
const EDITOR = '/src/ui/input/JsonEditor.tsx'
const EDITOR_INNER = '/src/ui/input/JsonEditorInner.tsx'

/** Pages that are read far more often than they are changed. */
const LIGHT = ['OverviewPage', 'JobsPage', 'JobPage', 'JobRuns', 'RunsPage', 'RunPage']
const HEAVY = /\/(?:@rc-component\/(?:form|select|picker)\/es\/(?!locale)|antd\/es\/(?:select|date-picker|form\/Form)\b(?!.*locale))/
/** The page around a page that is a tab of it. */
const AROUND = { JobRuns: 'JobPage', JobChanges: 'JobPage', AlertRulesPage: 'AlertsPage', AlertChannelsPage: 'AlertsPage', SilencesPage: 'AlertsPage', DeliveriesPage: 'AlertsPage' }

const nameOf = (id) => id.split('/').at(-1).replace(/\.tsx?$/, '')
const kB = (bytes) => bytes / 1024

/** Checks what a build has written. */
export function budget() {
  return {
    name: 'budget',
    apply: 'build',
    writeBundle({ dir }, bundle) {
      const chunks = Object.values(bundle).filter((one) => one.type === 'chunk')
      const chunkOf = (id) => chunks.find((one) => one.facadeModuleId === id) ?? chunks.find((one) => id in one.modules)
      const ids = chunks.flatMap((one) => Object.keys(one.modules))
      const find = (path) => ids.find((id) => id.endsWith(path)) ?? this.error(`no module ${path}: name it in scripts/budget.mjs`)
      const sizes = new Map()
      const sizeOf = (file) => {
        if (!sizes.has(file)) sizes.set(file, gzipSync(readFileSync(join(dir, file)), { level: 9 }).length)
        return sizes.get(file)
      }
      /** The files that come with chunks: what they import at once, and the styles. */
      const load = (start) => {
        const files = new Set()
        for (const open = [...start]; open.length > 0; ) {
          const chunk = open.pop()
          if (!chunk || files.has(chunk.fileName)) continue
          files.add(chunk.fileName)
          open.push(...chunk.imports.map((file) => bundle[file]))
          for (const css of chunk.viteMetadata?.importedCss ?? []) files.add(css)
        }
        return files
      }
      const modulesOf = (files) => [...files].flatMap((file) => Object.keys(bundle[file]?.modules ?? {}))
      const sum = (files) => kB([...files].reduce((all, file) => all + sizeOf(file), 0))
      const wrong = []

      const first = ['index.html', 'boot.js', ...Object.keys(bundle).filter((file) => file.endsWith('.css'))].filter((file) => existsSync(join(dir, file)))
      const shell = new Set([...first, ...load(chunks.filter((one) => one.isEntry))])
      console.log(`shell: ${sum(shell).toFixed(1)} kB gz in ${shell.size} files, of at most ${SHELL_KB} kB`)
      if (sum(shell) > SHELL_KB) wrong.push(`the shell has ${sum(shell).toFixed(1)} kB gz, of at most ${SHELL_KB}`)

      const texts = load([chunkOf(find(TEXTS))])
      const pages = this.getModuleInfo(find(ROUTER)).dynamicallyImportedIds
      const rows = pages.map((id) => {
        const name = nameOf(id)
        const around = pages.find((one) => nameOf(one) === AROUND[name])
        const files = new Set([...shell, ...texts, ...load([chunkOf(id), around && chunkOf(around)])])
        const modules = modulesOf(files)
        const edits = modules.some((one) => one.endsWith(EDITOR))
        const most = edits ? EDITOR_KB : PAGE_KB
        if (edits) for (const file of load([chunkOf(find(EDITOR_INNER))])) files.add(file)
        const size = sum(files)
        if (size > most) wrong.push(`${name} has ${size.toFixed(1)} kB gz, of at most ${most}`)
        if (files.size > PAGE_FILES) wrong.push(`${name} has ${files.size} files, of at most ${PAGE_FILES}`)
        const early = LIGHT.includes(name) && modules.find((one) => HEAVY.test(one))
        if (early) wrong.push(`${name} loads ${early.split('node_modules/').at(-1)} before it is used`)
        return { name, size, files: files.size, most }
      })
      rows.sort((a, b) => b.size - a.size)
      for (const row of rows) console.log(`page: ${row.size.toFixed(1).padStart(6)} kB gz of ${row.most}, ${String(row.files).padStart(2)} files  ${row.name}`)
      for (const one of chunks) {
        const bytes = Buffer.byteLength(one.code)
        if (bytes < CHUNK_BYTES) wrong.push(`the chunk ${one.fileName} has ${bytes} bytes: put it into a group of vite.config.ts (at least ${CHUNK_BYTES})`)
      }
      if (wrong.length > 0) this.error(`over the budget of scripts/budget.mjs:\n${wrong.map((line) => `  ${line}\n`).join('')}Load what is not needed at once when it is first used (ui/later.tsx).`)
    },
  }
}
