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

function offsetMs(instantMs: number, zone: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)/.exec(zoneOffset(instantMs, zone)) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000
}

/**
 * The instant at which clocks of the zone show this wall time
 * ("2026-03-08T02:30:00"). A time that a forward jump leaves out becomes the
 * one as far after the jump; of a doubled hour the first is taken.
 */
export function wallToInstant(wall: string, zone: string): string {
  const asUtc = Date.parse(`${wall}Z`)
  const before = asUtc - offsetMs(asUtc - 86_400_000, zone)
  const after = asUtc - offsetMs(asUtc + 86_400_000, zone)
  const fits = (instant: number) => instant + offsetMs(instant, zone) === asUtc
  return new Date(fits(before) || !fits(after) ? before : after).toISOString()
}

/** The wall time of an instant: "2026-11-21T12:00:00". */
export function instantToWall(instant: string, zone: string): string {
  return formatInstant(instant, zone).replace(' ', 'T')
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
