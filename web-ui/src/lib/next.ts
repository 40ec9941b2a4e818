/** Only a path of our own may be the target after signing in. */
export function safeNext(next: unknown): string | undefined {
  return typeof next === 'string' && /^\/(?![/\\])/.test(next) && !next.startsWith('/login') ? next : undefined
}
