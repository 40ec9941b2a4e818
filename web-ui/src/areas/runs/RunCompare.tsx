// What is different from the last good run of the job.
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { isFinal } from '../../api/queries'
import type { RunDetail } from '../../api/types'
import { useQuery } from '../../api/useQuery'
import { diffFields, showValue } from '../../lib/diff'
import { isRecord } from '../../lib/json'
import { AbsoluteTime, DurationText } from '../../ui/TimeText'
import { lastGoodQuery } from './lastGood'

interface Line {
  key: string
  name: string
  now: ReactNode
  before: ReactNode
  differs: boolean
}

/** Inputs that are no objects are compared as a whole. */
function inputDiff(before: unknown, now: unknown) {
  if (isRecord(before) && isRecord(now)) return diffFields(before, now)
  return diffFields({ value: before }, { value: now }).map((one) => ({ ...one, path: '' }))
}

export function RunCompare({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const good = useQuery(lastGoodQuery(run))
  if (good.data === undefined || run.parentId) return null
  const failed = isFinal(run.state) && run.state !== 'succeeded'
  return (
    <details className="card compare" open={failed}>
      <summary>
        <h2>{t('compare.title')}</h2>
      </summary>
      {good.data ? <Lines run={run} good={good.data} /> : <p className="muted">{t('compare.none')}</p>}
    </details>
  )
}

function Lines({ run, good }: { run: RunDetail; good: RunDetail }) {
  const { t } = useTranslation()
  const unknown = <span className="muted">{t('compare.unknown')}</span>
  const of = (key: string, name: string, show: (one: RunDetail) => ReactNode, value: (one: RunDetail) => unknown): Line => ({
    key,
    name,
    now: value(run) === null || value(run) === undefined ? unknown : show(run),
    before: value(good) === null || value(good) === undefined ? unknown : show(good),
    differs: value(run) !== value(good),
  })
  const inputs = inputDiff(good.input, run.input)
  const lines: Line[] = [
    of('fire', t('runs.list.fireAt'), (one) => <AbsoluteTime at={one.fireAt} />, () => ''),
    of('duration', t('compare.duration'), (one) => <DurationText ms={one.durationMs} />, (one) => one.durationMs),
    of('lateness', t('compare.lateness'), (one) => <DurationText ms={one.latenessMs} />, (one) => one.latenessMs),
    of('version', t('compare.version'), (one) => <span className="mono">{one.instanceVersion}</span>, (one) => one.instanceVersion),
    of('instance', t('compare.instance'), (one) => <span className="mono">{one.instance?.name}</span>, (one) => one.instance?.name),
    of('revision', t('compare.revision'), (one) => <span className="num">{one.jobRevision}</span>, (one) => one.jobRevision),
    ...inputs.map((one) => ({
      key: `input-${one.path}`,
      name: one.path ? t('compare.input', { path: one.path }) : t('compare.inputWhole'),
      now: <span className="mono">{showValue(one.after)}</span>,
      before: <span className="mono">{showValue(one.before)}</span>,
      differs: true,
    })),
  ]
  return (
    <>
      <div className="table-wrap">
        <table className="table keep" aria-label={t('compare.title')}>
          <thead>
            <tr>
              <th scope="col">{t('compare.field')}</th>
              <th scope="col">{t('compare.thisRun')}</th>
              <th scope="col">
                {t('compare.lastGood')}{' '}
                <Link to="/runs/$runId" params={{ runId: good.id }} className="mono">
                  {good.id}
                </Link>
              </th>
            </tr>
          </thead>
          <tbody>
            {lines.map((line) => (
              <tr key={line.key} className={line.differs ? 'differs' : undefined}>
                <th scope="row">{line.name}</th>
                <td>{line.now}</td>
                <td>{line.before}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {inputs.length === 0 && <p className="muted small">{t('compare.inputSame')}</p>}
    </>
  )
}
