import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// The development server hands API calls to a running server. Default: the
// mock of e2e/mock on port 8099; set CARILLON_DEV_API to use a real one.
const api = process.env.CARILLON_DEV_API ?? 'http://127.0.0.1:8099'

// A page loads a few groups and its own file instead of a hundred small files. The rest is
// grouped by the pages that use it, so that no page loads a part of others only.
const groups = [
  { name: 'shell', tags: ['$initial' as const], priority: 2 },
  { name: 'parts', entriesAware: true, entriesAwareMergeThreshold: 4000, minShareCount: 2, priority: 1 },
]

export default defineConfig({
  plugins: [react()],
  // Absolute in index.html, because a relative base breaks deep links of two levels.
  // The server writes its path there (handler.go). Scripts and styles name each other
  // relative to themselves, so they have no path that could be wrong.
  base: '/',
  experimental: { renderBuiltUrl: (_, { hostType }) => (hostType === 'html' ? undefined : { relative: true }) },
  build: {
    target: 'es2022',
    outDir: 'dist',
    // dist/.keep is committed so that Go builds without Node; it is put back
    // by scripts/precompress.mjs after Vite has emptied the folder.
    emptyOutDir: true,
    sourcemap: false,
    chunkSizeWarningLimit: 900,
    rolldownOptions: { output: { codeSplitting: { groups } } },
  },
  server: { proxy: { '/api': api, '/healthz': api, '/readyz': api } },
})
