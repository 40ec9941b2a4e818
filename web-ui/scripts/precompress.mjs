// Compresses what Vite built, so that the server sends ready bytes. The
// compressible originals are removed: the binary embeds .br and .gz only, and
// unpacks .gz for the rare client that accepts neither (see ../handler.go).
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const dist = new URL('../dist/', import.meta.url).pathname
const compressible = new Set(['.html', '.js', '.css', '.svg', '.json', '.txt'])

function files(dir) {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name)
    return entry.isDirectory() ? files(path) : [path]
  })
}

const total = { raw: 0, gz: 0, br: 0 }
const rows = []
for (const path of files(dist)) {
  if (!compressible.has(extname(path))) continue
  const raw = readFileSync(path)
  const gz = gzipSync(raw, { level: 9 })
  const br = brotliCompressSync(raw, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length },
  })
  writeFileSync(path + '.gz', gz)
  writeFileSync(path + '.br', br)
  rmSync(path)
  total.raw += raw.length
  total.gz += gz.length
  total.br += br.length
  rows.push([relative(dist, path), raw.length, gz.length, br.length])
}
if (!statSync(join(dist, '.keep'), { throwIfNoEntry: false })) {
  writeFileSync(
    join(dist, '.keep'),
    'The built pages go here: run "make ui". Without them the server shows a plain page which says so.\n',
  )
}

const kb = (n) => (n / 1024).toFixed(1).padStart(8)
rows.sort((a, b) => b[2] - a[2])
for (const [name, raw, gz, br] of rows) console.log(`${kb(raw)} kB ${kb(gz)} gz ${kb(br)} br  ${name}`)
console.log(`${kb(total.raw)} kB ${kb(total.gz)} gz ${kb(total.br)} br  in ${rows.length} files`)
