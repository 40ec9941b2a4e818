// A line between page and server that can be cut and mended.
import { connect, createServer } from 'node:net'

/** Listens on a free port and hands on to the server's address. */
export async function startProxy(url) {
  const target = new URL(url)
  const open = new Set()
  let up = true
  const server = createServer((near) => {
    if (!up) return near.destroy()
    const far = connect(Number(target.port), target.hostname)
    for (const [one, other] of [[near, far], [far, near]]) {
      open.add(one)
      one.on('error', () => {})
      one.once('close', () => {
        open.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut() {
      up = false
      for (const one of open) one.destroy()
    },
    mend() {
      up = true
    },
    stop() {
      this.cut()
      server.close()
    },
  }
}
