import type { Plugin } from 'vite'

export function unused(): Plugin
