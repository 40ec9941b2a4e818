// Instants on screen. Every absolute time names its zone.
const formats = new Map<string, Intl.DateTimeFormat>()

export const localZone: string = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'

function formatter(zone: string, withMs: boolean): Intl.DateTimeFormat {
  const key = `${zone}|${withMs}`
  let format = formats.get(key)
  if (!format) {
    format = new Intl.DateTimeFormat('sv-SE', {
      timeZone: zone,
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      ...(withMs ? { fractionalSecondDigits: 3 } : {}),
    })
    formats.set(key, format)
  }
  return format
}

/** True for a zone that this browser knows. */
export function isZone(zone: string): boolean {
  try {
    formatter(zone, false)
    return true
  } catch {
    return false
  }
}

/** "2026-11-21 12:00:00" in the zone; milliseconds after a point on request. */
export function formatInstant(instant: string | number, zone = localZone, withMs = false): string {
  const date = new Date(instant)
  if (Number.isNaN(date.getTime())) return String(instant)
  // Swedish is ISO-like, with a comma before the milliseconds.
  return formatter(isZone(zone) ? zone : 'UTC', withMs).format(date).replace(',', '.')
}

/** The clock part only: "12:00:00.123". */
export function formatClock(instant: string | number, zone = localZone): string {
  return formatInstant(instant, zone, true).slice(11)
}

export function formatWithZone(instant: string | number, zone = localZone, withMs = false): string {
  return `${formatInstant(instant, zone, withMs)} ${zone}`
}

/** Offset of a zone at an instant: "+08:00". */
export function zoneOffset(instant: string | number, zone: string): string {
  if (!isZone(zone)) return ''
  const part = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
    .formatToParts(new Date(instant))
    .find((p) => p.type === 'timeZoneName')
  const text = part?.value.replace('GMT', '') ?? ''
  return text === '' ? '+00:00' : text
}

let zones: string[] | undefined

/** All IANA zones that the browser knows, UTC and our own first. */
export function allZones(): string[] {
  if (!zones) {
    const all = Intl.supportedValuesOf('timeZone')
    zones = [...new Set(['UTC', localZone, ...all])]
  }
  return zones
}
