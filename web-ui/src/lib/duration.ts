// Durations: Go-like strings on the wire ("1h30m", "250ms"), words on screen.
import type { TFunction } from 'i18next'

const UNIT_MS: Record<string, number> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/** Milliseconds of a Go duration; NaN when it is none. "0" needs no unit. */
export function parseDuration(text: string): number {
  const value = text.trim()
  if (value === '0') return 0
  if (!/^[+-]?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/.test(value)) return Number.NaN
  let total = 0
  for (const [, amount, unit] of value.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)) {
    total += Number(amount) * (UNIT_MS[unit ?? ''] ?? Number.NaN)
  }
  return value.startsWith('-') ? -total : total
}

/**
 * Short words for a length of time: "42 ms", "3.4 s", "1 m 12 s", "2 h 5 m",
 * "3 d 4 h". At most two units; below ten seconds one decimal, unless it is zero.
 */
export function humanDuration(ms: number, t: TFunction): string {
  const sign = ms < 0 ? '-' : ''
  const abs = Math.abs(ms)
  const unit = (n: number | string, key: 'ms' | 's' | 'm' | 'h' | 'd') => t(`unit.${key}`, { n })
  if (abs < 1_000) return sign + unit(Math.round(abs), 'ms')
  if (abs < 10_000) return sign + unit((Math.floor(abs / 100) / 10).toFixed(1).replace('.0', ''), 's')
  const s = Math.floor(abs / 1_000)
  const two = (big: number, bigKey: 'm' | 'h' | 'd', small: number, smallKey: 's' | 'm' | 'h') =>
    sign + unit(big, bigKey) + (small > 0 ? ' ' + unit(small, smallKey) : '')
  if (s < 60) return sign + unit(s, 's')
  if (s < 3_600) return two(Math.floor(s / 60), 'm', s % 60, 's')
  if (s < 86_400) return two(Math.floor(s / 3_600), 'h', Math.floor((s % 3_600) / 60), 'm')
  return two(Math.floor(s / 86_400), 'd', Math.floor((s % 86_400) / 3_600), 'h')
}

/** The greatest unit of humanDuration alone, rounded down: "4 m". */
export function roughDuration(ms: number, t: TFunction): string {
  const units = [['d', 86_400_000], ['h', 3_600_000], ['m', 60_000], ['s', 1_000]] as const
  const [unit, length] = units.find(([, one]) => Math.abs(ms) >= one) ?? (['ms', 1] as const)
  return t(`unit.${unit}`, { n: Math.trunc(ms / length) })
}

/** A wire duration in words; "" for none and zero. */
export function wireDuration(text: string | undefined, t: TFunction): string {
  if (!text) return ''
  const ms = parseDuration(text)
  if (Number.isNaN(ms)) return text
  return ms === 0 ? '' : humanDuration(ms, t)
}
