// A reverse proxy that has the server below a path and nothing elsewhere. A page, a script
// or a call that leaves the path gets a 404. The steps see it on the page's console.
import { createServer, request } from 'node:http'

/** Listens on a free port; to() says where the server is. */
export async function startSubpath(path) {
  let target
  const left = []
  const proxy = createServer((asked, answer) => {
    if (!`${asked.url}/`.startsWith(`${path}/`)) {
      left.push(`${asked.method} ${asked.url}`)
      answer.writeHead(404).end('another application')
      return
    }
    const inner = request({ host: target.hostname, port: target.port, method: asked.method, path: asked.url, headers: asked.headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers)
      got.pipe(answer)
    })
    inner.once('error', () => answer.destroy())
    answer.once('close', () => inner.destroy())
    asked.pipe(inner)
  })
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${proxy.address().port}${path}`,
    to(url) {
      target = new URL(url)
    },
    /** What was asked for outside of the path. */
    left,
    stop() {
      proxy.closeAllConnections()
      proxy.close()
    },
  }
}
