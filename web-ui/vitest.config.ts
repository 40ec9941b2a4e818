import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    // Files that render components ask for jsdom in their first line; the
    // others need no document and start ten times faster without one.
    environment: 'node',
    include: ['test/**/*.test.{ts,tsx}'],
    restoreMocks: true,
    setupFiles: ['test/setup.ts'],
    // Against a hang only: a loaded machine draws a form in many seconds.
    testTimeout: 120_000,
  },
})
