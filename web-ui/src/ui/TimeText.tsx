// Instants in three dresses: relative with the absolute ones on hover, a
// countdown, and absolute with its zone. A person may want all of them absolute.
import { useTranslation } from 'react-i18next'
import { humanDuration, roughDuration } from '../lib/duration'
import { formatInstant, formatWithZone, localZone } from '../lib/time'
import { Hint } from './Hint'
import { useNow } from './hooks'
import { useTimeStyle, useZone } from './timeStyle'

interface Props {
  at: string | null | undefined
  /** Zone of the job, shown on hover beside local time and UTC. */
  zone?: string
  fallback?: string
}

interface RelativeProps extends Props {
  /** One unit is enough: "4 m ago". */
  short?: boolean
}

function AbsoluteTimes({ at, zone }: { at: string; zone?: string }) {
  const { t } = useTranslation()
  const rows: [string, string][] = [[t('time.local'), localZone]]
  if (zone && zone !== localZone) rows.push([t('time.job'), zone])
  if (localZone !== 'UTC' && zone !== 'UTC') rows.push([t('time.utc'), 'UTC'])
  return (
    <>
      {rows.map(([label, name]) => (
        <span key={name} className="line nowrap">
          {label}: {formatWithZone(at, name, true)}
        </span>
      ))}
    </>
  )
}

/** "in 3 m 12 s", "5 s ago", "now"; all absolute times on hover, or in its place. */
export function RelativeTime(props: RelativeProps) {
  return useTimeStyle() === 'relative' ? <FarAway {...props} /> : <AbsoluteTime {...props} />
}

function FarAway({ at, zone, fallback = '—', short }: RelativeProps) {
  const { t } = useTranslation()
  const now = useNow()
  if (!at) return <span className="muted">{fallback}</span>
  const delta = Date.parse(at) - now
  const whole = Math.trunc(delta / 1_000) * 1_000
  const text = short ? roughDuration(Math.abs(whole), t) : humanDuration(Math.abs(whole), t)
  return (
    <Hint hint={() => <AbsoluteTimes at={at} zone={zone} />}>
      <time dateTime={at} className="num nowrap">
        {Math.abs(whole) < 1_000 ? t('time.now') : whole > 0 ? t('time.in', { text }) : t('time.ago', { text })}
      </time>
    </Hint>
  )
}

/** "2026-11-21 12:00:00.123 Asia/Shanghai"; the other zones on hover. */
export function AbsoluteTime({ at, zone, ms = false, fallback = '—' }: Props & { ms?: boolean }) {
  const own = useZone()
  if (!at) return <span className="muted">{fallback}</span>
  return (
    <Hint hint={() => <AbsoluteTimes at={at} zone={zone} />}>
      <time dateTime={at} className="num">
        <span className="nowrap">{formatInstant(at, own, ms)}</span> <span className="muted">{own}</span>
      </time>
    </Hint>
  )
}

export function DurationText({ ms, fallback = '—' }: { ms: number | null | undefined; fallback?: string }) {
  const { t } = useTranslation()
  if (ms === null || ms === undefined) return <span className="muted">{fallback}</span>
  return (
    <span className="num nowrap" title={`${ms} ms`}>
      {humanDuration(ms, t)}
    </span>
  )
}
