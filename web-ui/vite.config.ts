import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// The development server hands API calls to a running server. Default: the
// mock of e2e/mock on port 8099; set CARILLON_DEV_API to use a real one.
const api = process.env.CARILLON_DEV_API ?? 'http://127.0.0.1:8099'

const heavy = 'date-picker|picker|time-picker|select|virtual-list|cascader|tree-select|input|input-number|textarea|checkbox|radio|mentions|segmented|switch|modal|dialog|drawer|menu|dropdown'
const library = (names: string) => new RegExp(`node_modules/(?:antd/es|@rc-component)/(?:${names})/`)
const lightLibrary = new RegExp(`node_modules/(?!(?:antd/es|@rc-component)/(?:${heavy})/)`)
const together = { entriesAware: true, minShareCount: 2 }

// A page loads a few groups and its own file instead of a hundred small files. Modules are
// grouped by the pages that use them, and small groups join a neighbour. A group takes what its
// modules need, so the light parts come first: a page without a form loads no part of a form.
const groups = [
  { name: 'shell', tags: ['$initial' as const], priority: 9 },
  { name: 'library', test: lightLibrary, ...together, entriesAwareMergeThreshold: 8_000, priority: 8 },
  { name: 'menu', test: library('menu|dropdown'), ...together, entriesAwareMergeThreshold: 90_000, priority: 7 },
  { name: 'dialog', test: library('modal|dialog|drawer'), ...together, entriesAwareMergeThreshold: 40_000, priority: 6 },
  { name: 'input', test: library('input|textarea'), ...together, entriesAwareMergeThreshold: 40_000, priority: 5 },
  { name: 'form', test: library('input-number|checkbox|radio|mentions|segmented|switch'), ...together, entriesAwareMergeThreshold: 20_000, priority: 4 },
  { name: 'select', test: library('select|virtual-list|cascader|tree-select'), ...together, entriesAwareMergeThreshold: 90_000, priority: 3 },
  { name: 'picker', test: library('date-picker|picker|time-picker'), ...together, entriesAwareMergeThreshold: 90_000, priority: 2 },
  { name: 'parts', ...together, entriesAwareMergeThreshold: 1_500, priority: 1 },
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
