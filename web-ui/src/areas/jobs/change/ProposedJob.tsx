// A job that does not exist yet, as code proposes it: in words, first what is
// unlike any new job.
import '../jobs.css'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { Proposal, Ref } from '../../../api/types'
import { scheduleOfJob } from '../form/jobForm'
import { settingLabel, settingsOf, settingText, type Setting } from '../jobWords'
import { Fact } from '../../../ui/Fact'
import { JsonView } from '../../../ui/input/JsonView'
import { SchedulePreview } from '../SchedulePreview'
import { ScheduleText } from '../ScheduleText'

const FIRES = 5

export function ProposedJob({ spec, executor }: { spec: Proposal['proposed']; executor: Ref }) {
  const { t } = useTranslation()
  const { special, usual } = settingsOf(spec)
  return (
    <div className="grid-2 proposed">
      <div className="stack">
        <section aria-label={t('jobs.detail.what')}>
          <h3>{t('jobs.detail.what')}</h3>
          {spec.description && <p className="below-2">{spec.description}</p>}
          <dl className="facts">
            <Fact label={t('jobs.form.handler')}>
              <span className="mono">{spec.handler}</span>
            </Fact>
            <Fact label={t('jobs.form.executor')}>
              <Link to="/executors/$executorId" params={{ executorId: executor.id }}>
                {executor.name}
              </Link>
            </Fact>
            <Fact label={t('jobs.form.owner')}>{[spec.owner.name, spec.owner.email].filter(Boolean).join(' · ') || t('field.none')}</Fact>
            <Fact label={t('jobs.form.labels')}>{settingText('labels', spec.labels, t)}</Fact>
          </dl>
          {spec.input !== undefined && spec.input !== null && <JsonView value={spec.input} label={t('jobs.form.input')} empty="" />}
        </section>
        <section aria-label={t('jobs.detail.how')}>
          <h3>{t('jobs.detail.how')}</h3>
          {special.length > 0 ? <Settings list={special} compare /> : <p className="muted">{t('proposals.allUsual')}</p>}
          <details className="above-2">
            <summary>{t('proposals.usual', { count: usual.length })}</summary>
            <Settings list={usual} />
          </details>
        </section>
      </div>
      <section aria-label={t('jobs.detail.when')}>
        <h3>{t('jobs.detail.when')}</h3>
        <div className="below-2">
          <ScheduleText schedule={spec.schedule} brief />
        </div>
        {spec.schedule.kind !== 'none' && <SchedulePreview spec={scheduleOfJob(spec.schedule)} fires={FIRES} />}
      </section>
    </div>
  )
}

/** compare: with what a new job would have. */
function Settings({ list, compare = false }: { list: Setting[]; compare?: boolean }) {
  const { t } = useTranslation()
  return (
    <dl className="facts above-1">
      {list.map(({ path, value, usual }) => (
        <Fact key={path} label={settingLabel(path, t) ?? path}>
          {settingText(path, value, t)}
          {compare && <span className="muted small"> · {t('proposals.insteadOf', { value: settingText(path, usual, t) })}</span>}
        </Fact>
      ))}
    </dl>
  )
}
