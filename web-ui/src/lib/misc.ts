/** A random key for Idempotency-Key; works on plain http too, where crypto.randomUUID is missing. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('')
}

/** Copies text; false when the browser forbids it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text)
      return true
    }
  } catch {
    // Fall through: the old way needs no permission.
  }
  const area = document.createElement('textarea')
  area.value = text
  area.style.position = 'fixed'
  area.style.opacity = '0'
  document.body.append(area)
  area.select()
  const ok = document.execCommand('copy')
  area.remove()
  return ok
}

export function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

// API keys alone are of the roles caller and timer, and may see no page.
const ROLE_RANK = { caller: -1, timer: -1, viewer: 0, operator: 1, editor: 2, scripter: 3, admin: 4 } as const

export function roleAtLeast(role: string | undefined, needed: keyof typeof ROLE_RANK): boolean {
  return ((ROLE_RANK as Record<string, number>)[role ?? ''] ?? -1) >= ROLE_RANK[needed]
}

/**
 * A cron position is a byte offset of UTF-8; an input's selection counts
 * UTF-16 units. Both are the same for ASCII, which cron is, but not for a
 * pasted full-width character, the very mistake to be shown.
 */
export function unitOffset(text: string, byteOffset: number): number {
  let bytes = 0
  let units = 0
  for (const char of text) {
    if (bytes >= byteOffset) break
    bytes += new TextEncoder().encode(char).length
    units += char.length
  }
  return units
}
