// Counts of all, failing, late, paused and never firing jobs, each of which is a filter, and the way to deleted ones.
import './counters.css'
import { useTranslation } from 'react-i18next'
import { jobCounts, type JobCountsQuery } from '../../api/jobCounts'
import { useQuery } from '../../api/useQuery'
import type { JobsSearch } from '../../lib/search'

const COUNTERS = [
  { state: undefined, count: 'all', text: 'jobs.counts.all' },
  { state: 'failing', count: 'failing', text: 'jobs.counts.failing' },
  { state: 'late', count: 'late', text: 'jobs.counts.late' },
  { state: 'paused', count: 'paused', text: 'jobs.counts.paused' },
  { state: 'never_fires', count: 'neverFires', text: 'jobs.counts.neverFires' },
] as const

interface Props {
  /** The filter of the list, without its state. */
  query: JobCountsQuery
  state: JobsSearch['state']
  onState: (state: JobsSearch['state']) => void
  /** The list of deleted jobs is shown. */
  deleted: boolean
  onDeleted: () => void
}

export function JobCounters({ query, state, onState, deleted, onDeleted }: Props) {
  const { t, i18n } = useTranslation()
  const { data } = useQuery(jobCounts(query))
  return (
    <div className="counters" role="group" aria-label={t('jobs.counts.label')}>
      {COUNTERS.map((one) => {
        const count = data?.[one.count]
        return (
          <button key={one.count} type="button" className={`counter counter-${one.count}`} aria-pressed={!deleted && state === one.state} onClick={() => onState(one.state)}>
            {t(one.text)} <strong className={count ? undefined : 'muted'}>{count === undefined ? '–' : `${count.toLocaleString(i18n.language)}${data?.more ? '+' : ''}`}</strong>
          </button>
        )
      })}
      <button type="button" className="counter" aria-pressed={deleted} onClick={onDeleted}>
        {t('deleted.title')}
      </button>
    </div>
  )
}
