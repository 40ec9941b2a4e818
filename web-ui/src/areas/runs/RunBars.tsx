// Bars above a list of runs. A drag narrows the list to a time, which stands in the address.
import { useTranslation } from 'react-i18next'
import { statisticQueries } from '../../api/statistics'
import { useQuery } from '../../api/useQuery'
import { FailureShare, HourBars } from '../../charts/HourBars'
import { useNow } from '../../ui/hooks'
import { useZone } from '../../ui/timeStyle'
import { barSpan } from './runBars'
import type { Controlled } from './RunTable'

/** The span moves by hours, so that one answer serves for a while. */
const STEP_MS = 60_000

export function RunBars({ search, onChange, jobId }: Controlled) {
  const { t } = useTranslation()
  const zone = useZone()
  const now = useNow()
  const { from, to, step, selected } = barSpan(search, Math.floor(now / STEP_MS) * STEP_MS)
  const of = { jobId: jobId ?? search.jobId, executorId: search.executorId }
  const { data } = useQuery(statisticQueries.between(of, from, to, step))
  if (!data || data.items.length === 0) return null
  const narrow = (first: string, last: string) => onChange({ ...search, range: undefined, cursor: undefined, from: first, to: last })
  const others = Boolean(search.q ?? search.state ?? search.cause ?? search.instanceId ?? search.fingerprint)
  const label = t(step === 'day' ? 'charts.endedByDay' : 'charts.ended')
  return (
    <section className="card run-bars" aria-label={label}>
      <div className="card-head">
        <p className="muted small grow">
          {t('charts.endedHelp')} {others && t('charts.otherFilters')}
        </p>
        <FailureShare total={data.total} />
      </div>
      <HourBars data={data} label={label} zone={zone} height={120} selected={selected} onOpen={narrow} onSelect={narrow} />
    </section>
  )
}
