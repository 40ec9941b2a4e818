// Chunks that are loaded when they are needed. When one does not come, either
// the network is gone (it is asked for until it comes), or the server has been
// upgraded and its pages are of another build (only a reload brings those).
import { reportOutdated, reportSilence } from './connection'

/** How long until the server is asked again, while it does not answer. */
const AGAIN_MS = 2_000
/** So often is a chunk asked for that the server has and the browser does not load. */
const TRIES = 3

export type Missing = 'outdated' | 'silent' | 'there'

/** A chunk that the server has and that does not load; browsers which remember a failed import need a reload. */
export class ChunkError extends Error {}

const ENTRY = /<script[^>]+type="module"[^>]*\ssrc="(\/assets\/[^"]+)"/
const ASSET = /\/assets\/[^\s"')]+/

const entryOf = (html: string) => ENTRY.exec(html)?.[1]
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function ask(path: string, method: string): Promise<Response | undefined> {
  try {
    return await fetch(path, { method, cache: 'no-store', signal: AbortSignal.timeout(AGAIN_MS * 5) })
  } catch {
    return undefined
  }
}

/**
 * Why a chunk did not come. The page of every build names its own entry script,
 * by a name with the hash of its content; what answers without one, such as a
 * proxy or a server that starts, is not the server.
 */
export async function whyMissing(error: unknown, own = document.querySelector('script[type=module][src^="/assets/"]')?.getAttribute('src')): Promise<Missing> {
  const page = await ask('/', 'GET')
  const entry = page?.ok ? entryOf(await page.text().catch(() => '')) : undefined
  if (!entry) return 'silent'
  if (own && entry !== own) return 'outdated'
  // During a rolling upgrade one node may serve this page and another one the asset.
  const asset = ASSET.exec(String(error))?.[0]
  if (!asset) return 'there'
  const answer = await ask(asset, 'HEAD')
  if (!answer) return 'silent'
  return answer.status === 404 ? 'outdated' : 'there'
}

/**
 * Loads a chunk; resolves when it is there. Without network it waits until the
 * server is back. After an upgrade it waits for ever: the shell offers the
 * reload, and what is open stays as it is until then.
 */
export async function loadChunk<T>(load: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; ) {
    try {
      return await load()
    } catch (err) {
      const why = await whyMissing(err)
      if (why === 'outdated') {
        reportOutdated()
        return new Promise<never>(() => {})
      }
      if (why === 'silent') reportSilence()
      else if (++tries > TRIES) throw new ChunkError(String(err))
      await pause(AGAIN_MS)
    }
  }
}

/** After the server was away: has it come back with other pages? */
export async function checkBuild(): Promise<void> {
  if ((await whyMissing(undefined)) === 'outdated') reportOutdated()
}
