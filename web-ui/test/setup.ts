import { beforeAll } from 'vitest'

// Against a hang only, as testTimeout: a loaded machine draws a form in many seconds.
beforeAll(async () => {
  if (typeof document === 'undefined') return
  const { configure } = await import('@testing-library/react')
  configure({ asyncUtilTimeout: 60_000 })
})
