import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    environment: 'jsdom',
    include: ['test/**/*.test.{ts,tsx}'],
    setupFiles: ['test/setup.ts'],
    environmentOptions: { jsdom: { url: 'http://carillon.test/' } },
    restoreMocks: true,
  },
})
