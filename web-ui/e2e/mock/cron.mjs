// A small cron for the mock only; the real server has the real parser.
const FIELDS = [
  ['second', 0, 59],
  ['minute', 0, 59],
  ['hour', 0, 23],
  ['day', 1, 31],
  ['month', 1, 12],
  ['weekday', 0, 7],
]

export class CronError extends Error {
  constructor(message, position, length, hint) {
    super(message)
    Object.assign(this, { position, length, hint })
  }
}

export function parse(expr) {
  const tokens = [...expr.matchAll(/\S+/g)].map((m) => ({ text: m[0], at: Buffer.byteLength(expr.slice(0, m.index)) }))
  if (tokens.length !== 5 && tokens.length !== 6) {
    throw new CronError(`expected 5 or 6 fields, got ${tokens.length}`, 0, expr.length, 'second minute hour day month weekday')
  }
  const withSeconds = tokens.length === 6
  const sets = withSeconds ? [] : [new Set([0])]
  tokens.forEach((token, i) => sets.push(parseField(token, FIELDS[withSeconds ? i : i + 1])))
  if (sets[5].has(7)) sets[5].add(0)
  return { sets, anyDay: tokens[withSeconds ? 3 : 2].text === '*', anyWeekday: tokens[withSeconds ? 5 : 4].text === '*' }
}

function parseField({ text, at }, [name, min, max]) {
  const out = new Set()
  let offset = at
  for (const part of text.split(',')) {
    const match = /^(\*|\?|(\d+)(?:-(\d+))?)(?:\/(\d+))?$/.exec(part)
    if (!match) throw new CronError(`${name}: cannot read "${part}"`, offset, part.length, `numbers ${min}-${max}, *, ranges a-b, steps /n`)
    const any = match[1] === '*' || match[1] === '?'
    const from = any ? min : Number(match[2])
    const to = any ? max : match[3] ? Number(match[3]) : match[4] ? max : from
    if (from < min || to > max || from > to) throw new CronError(`${name}: ${part} is outside ${min}-${max}`, offset, part.length, `use ${min} to ${max}`)
    for (let n = from; n <= to; n += Number(match[4] ?? 1)) out.add(n)
    offset += part.length + 1
  }
  return out
}

const formats = new Map()

function offsetMs(ms, zone) {
  let format = formats.get(zone)
  if (!format) formats.set(zone, (format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })))
  const part = format.formatToParts(ms).find((p) => p.type === 'timeZoneName').value
  const m = /GMT([+-])(\d\d):(\d\d)/.exec(part)
  return m ? (m[1] === '-' ? -1 : 1) * (Number(m[2]) * 60 + Number(m[3])) * 60_000 : 0
}

export function zoned(ms, zone) {
  const offset = offsetMs(ms, zone)
  const sign = offset < 0 ? '-' : '+'
  const abs = Math.abs(offset) / 60_000
  const pad = (n) => String(n).padStart(2, '0')
  return new Date(ms + offset).toISOString().slice(0, 19) + sign + pad(Math.floor(abs / 60)) + ':' + pad(abs % 60)
}

/** The next n fire times after `from`, ms since the epoch. */
export function nextFires(cron, zone, from, n) {
  const out = []
  const wall = new Date(from + offsetMs(from, zone))
  const day = new Date(Date.UTC(wall.getUTCFullYear(), wall.getUTCMonth(), wall.getUTCDate()))
  const [seconds, minutes, hours, days, months, weekdays] = cron.sets
  for (let i = 0; i < 366 * 6 && out.length < n; i++, day.setUTCDate(day.getUTCDate() + 1)) {
    if (!months.has(day.getUTCMonth() + 1)) continue
    const dayFits = days.has(day.getUTCDate())
    const weekdayFits = weekdays.has(day.getUTCDay())
    if (!(cron.anyDay ? weekdayFits : cron.anyWeekday ? dayFits : dayFits || weekdayFits)) continue
    for (const h of hours) {
      for (const m of minutes) {
        for (const s of seconds) {
          const at = day.getTime() + ((h * 60 + m) * 60 + s) * 1000
          const instant = at - offsetMs(at - offsetMs(at, zone), zone)
          if (instant > from) out.push(instant)
          if (out.length >= n) return out
        }
      }
    }
  }
  return out
}
