import type { Plugin } from 'vite'

export function labels(): Plugin
