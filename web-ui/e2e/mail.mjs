// A mail server that takes every mail and forgets it.
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'

export async function startMail() {
  const server = createServer((socket) => {
    let body = false
    socket.on('error', () => {})
    socket.write('220 mail\r\n')
    createInterface({ input: socket }).on('line', (line) => {
      if (body && line !== '.') return
      if (/^quit/i.test(line)) return socket.end('221 bye\r\n')
      body = /^data/i.test(line)
      socket.write(body ? '354 go on\r\n' : '250 taken\r\n')
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: server.address().port, stop: () => server.close() }
}
