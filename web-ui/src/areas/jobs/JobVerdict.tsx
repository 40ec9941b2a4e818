// The first sentence of a job's page: how its newest runs ended, and the strip of them.
import './jobs.css'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { Job } from '../../api/types'
import { Peal } from '../../charts/Peal'
import { humanDuration } from '../../lib/duration'
import { verdictOf, type Verdict } from './jobVerdict'
import { zoneCity } from './shortSchedule'
import { formatInstant, localZone } from '../../lib/time'
import { lastRunMessage } from '../../lib/why'
import { useCan, useLang } from '../../ui/hooks'
import { DurationText, RelativeTime } from '../../ui/TimeText'

const WEEK_MS = 7 * 86_400_000

/** "Tue 14:03 Berlin"; with the date if it is older than six days. */
function shortInstant(at: string, lang: string): string {
  const clock = `${formatInstant(at).slice(11, 16)} ${zoneCity(localZone)}`
  if (Date.now() - Date.parse(at) > WEEK_MS - 86_400_000) return `${formatInstant(at).slice(0, 10)} ${clock}`
  return `${new Intl.DateTimeFormat(lang, { weekday: 'short', timeZone: localZone }).format(new Date(at))} ${clock}`
}

export function JobVerdict({ job }: { job: Job }) {
  const { t } = useTranslation()
  const verdict = verdictOf(job.recentRuns)
  const { stats7d } = job
  return (
    <section className={`card verdict ${verdict.kind}`} aria-label={t('jobs.verdict.title')}>
      {job.neverFires && <NeverFires job={job} />}
      {verdict.kind === 'failing' ? <Failing verdict={verdict} /> : <Well verdict={verdict} any={job.recentRuns.length > 0} />}
      {job.recentRuns.length > 0 && <Peal runs={job.recentRuns} name={job.name} zone={job.schedule.zone} large />}
      {stats7d && (
        <p className="muted small">
          {t('jobs.verdict.week', { count: stats7d.runs, failed: stats7d.failed })}
          {stats7d.p50Ms !== null && <> {t(stats7d.p50Ms === stats7d.p95Ms ? 'jobs.verdict.steady' : 'jobs.verdict.spread', { p50: humanDuration(stats7d.p50Ms, t), p95: humanDuration(stats7d.p95Ms ?? stats7d.p50Ms, t) })}</>}
        </p>
      )}
    </section>
  )
}

/** No fire is left, or there never was one. */
function NeverFires({ job }: { job: Job }) {
  const { t } = useTranslation()
  const lang = useLang()
  const canEdit = useCan('editor')
  return (
    <p className="verdict-line">
      <strong className="st-timeout">{t(job.recentRuns.length > 0 ? 'jobs.verdict.noFireLeft' : 'jobs.verdict.neverFires')}</strong> {job.schedule.text?.[lang]}{' '}
      {canEdit && (
        <Link to="/jobs/$jobId/edit" params={{ jobId: job.id }}>
          {t('jobs.action.edit')}
        </Link>
      )}
    </p>
  )
}

function Failing({ verdict }: { verdict: Verdict }) {
  const { t } = useTranslation()
  const lang = useLang()
  const { newest, since, lastSuccess, failed } = verdict
  if (!newest) return null
  const why = lastRunMessage(newest, t)
  return (
    <>
      <p className="verdict-line">
        <strong className="st-failed">
          {since ? t('jobs.verdict.failing', { count: failed, since: shortInstant(since.fireAt, lang) }) : t('jobs.verdict.allFailed', { count: failed })}
        </strong>
        {lastSuccess && (
          <>
            {' '}
            {t('jobs.verdict.lastSuccess')} <RelativeTime at={lastSuccess.finishedAt ?? lastSuccess.fireAt} />.
          </>
        )}
      </p>
      <p className="verdict-error">
        <Link to="/runs/$runId" params={{ runId: newest.id }}>
          {why || t(`runs.state.${newest.state}`)}
        </Link>
      </p>
    </>
  )
}

function Well({ verdict, any }: { verdict: Verdict; any: boolean }) {
  const { t } = useTranslation()
  const { newest } = verdict
  if (!newest) return <p className="verdict-line muted">{t(any ? 'jobs.verdict.noneEnded' : 'jobs.list.noRun')}</p>
  return (
    <p className="verdict-line">
      <strong className="st-success">{t('jobs.verdict.succeeded')}</strong>{' '}
      <Link to="/runs/$runId" params={{ runId: newest.id }}>
        <RelativeTime at={newest.finishedAt ?? newest.fireAt} />
      </Link>
      {newest.durationMs !== null && (
        <span className="muted">
          {' '}
          · <DurationText ms={newest.durationMs} />
        </span>
      )}
    </p>
  )
}
