// Why a run came as it did: the server's sentence, the steps with the delays
// between them, and the instances that were considered.
import './runs.css'
import { useTranslation } from 'react-i18next'
import type { Explanation, InstanceVerdict } from '../../api/types'
import { humanDuration } from '../../lib/duration'
import { stepRows, withoutError, type StepKind, type StepRow } from './explain'
import { formatInstant, localZone } from '../../lib/time'
import { saidIn } from '../../lib/said'
import { firstLine, onOurClock } from '../../lib/why'
import { useLang } from '../../ui/hooks'
import { VerdictChip } from '../../ui/StateChip'
import { StateIcon, type IconName } from '../../ui/StateIcon'

const SIGNS: Record<StepKind, IconName> = {
  planned: 'clock',
  claimed: 'dots',
  offered: 'arrow',
  granted: 'check',
  started: 'play',
  finished: 'stop',
  delayed: 'pause',
  stop_asked: 'stopping',
  returned: 'again',
  part: 'ring',
  before: 'ring',
  spread: 'half',
  after: 'ring',
  part_ended: 'dot',
}

export function ExplainSummary({ explanation, error = '' }: { explanation: Explanation; error?: string }) {
  const { t } = useTranslation()
  const lang = useLang()
  const { party } = explanation
  return (
    <p className="explain-summary">
      {saidIn(onOurClock(withoutError(explanation.summary[lang], firstLine(error))), t)}
      {party && (
        <>
          {' '}
          <span className="label-chip">{t('explain.party', { who: t(`explain.by_${party}`) })}</span>
        </>
      )}
    </p>
  )
}

export function ExplainSteps({ explanation }: { explanation: Explanation }) {
  const { t } = useTranslation()
  if (explanation.steps.length === 0) return null
  const rows = stepRows(explanation.steps, explanation.stamps?.plannedAt ?? explanation.steps[0]?.at ?? '')
  return (
    <>
      <p className="muted small">{t('explain.stepsHelp', { zone: localZone })}</p>
      <div className="table-wrap">
        <table className="table steps" role="table" aria-label={t('explain.steps')}>
          <thead role="rowgroup">
            <tr role="row">
              {(['step', 'at', 'sinceFire', 'sinceLast'] as const).map((key) => (
                <th key={key} role="columnheader" scope="col">
                  {t(`explain.${key}`)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {rows.map((row, i) => (
              <Step key={`${row.step.code}-${row.step.at}-${i}`} row={row} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function Step({ row }: { row: StepRow }) {
  const { t } = useTranslation()
  const lang = useLang()
  const { step, kind, sinceFire, sinceLast, slow } = row
  const instant = formatInstant(step.at, localZone, true)
  return (
    <tr role="row">
      <td role="cell" className="card-title">
        <span className={`step-sign${kind === 'delayed' ? ' st-timeout' : ''}`}>
          <StateIcon name={SIGNS[kind] ?? 'ring'} />
        </span>
        <span className="step-text">{saidIn(onOurClock(step.text[lang]), t)}</span>
      </td>
      <td role="cell" className="mono nowrap" data-label={t('explain.at')}>
        <time dateTime={step.at} title={`${instant} ${localZone}`}>
          {instant.slice(11)}
        </time>
      </td>
      <td role="cell" className="num nowrap" data-label={t('explain.sinceFire')}>
        {kind === 'planned' ? '—' : sinceFire < 0 ? <span className="muted">{t('explain.early', { text: humanDuration(-sinceFire, t) })}</span> : `+ ${humanDuration(sinceFire, t)}`}
      </td>
      <td role="cell" className="num nowrap" data-label={t('explain.sinceLast')}>
        {sinceLast === null ? '—' : <span className={slow ? 'st-timeout slow-step' : undefined}>+ {humanDuration(sinceLast, t)}{slow && ` · ${t('explain.slow')}`}</span>}
      </td>
    </tr>
  )
}

/** Those of the executor, the chosen one first, each with the reason. */
export function ConsideredInstances({ instances }: { instances: InstanceVerdict[] }) {
  const { t } = useTranslation()
  const lang = useLang()
  if (instances.length === 0) return <p className="muted">{t('explain.noInstances')}</p>
  return (
    <>
      <p className="muted small">{t('explain.instancesHelp')}</p>
      <ul className="plain-list considered" aria-label={t('explain.instances')}>
        {instances.map((one) => (
          <li key={one.instance.id}>
            <span>
              <strong className="mono">{one.instance.name}</strong>
              <br />
              <span className="muted small">{onOurClock(one.text[lang])}</span>
            </span>
            <VerdictChip verdict={one.verdict} />
          </li>
        ))}
      </ul>
    </>
  )
}
