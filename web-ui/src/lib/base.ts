/** Where the server is on its host: "/carillon", or "" at the root. The server writes it into index.html. */
export const basePath = typeof document === 'undefined' ? '' : (document.documentElement.dataset.base ?? '').replace(/\/$/, '')
