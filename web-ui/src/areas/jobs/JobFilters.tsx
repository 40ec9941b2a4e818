// Filters and order of the list of jobs.
import { useTranslation } from 'react-i18next'
import { isFiltered, JOB_GROUPS, JOB_SORTS, JOB_STATES, type JobsSearch } from '../../lib/search'
import { Choice } from '../../ui/Choice'
import { ExecutorFilter, useExecutorName } from '../../ui/ExecutorFilter'
import { Filters } from '../../ui/Filters'
import { SearchBox } from '../../ui/SearchBox'

const KINDS = ['job', 'call', 'callback', 'timer', 'all'] as const

interface Props {
  search: JobsSearch
  onChange: (change: Partial<JobsSearch>) => void
  onClear: () => void
}

export function JobFilters({ search, onChange, onClear }: Props) {
  const { t } = useTranslation()
  const executor = useExecutorName(search.executorId)
  const { executorId, state, kind, proposed, handler, label, group } = search
  return (
    <Filters
      label={t('jobs.list.title')}
      search={<SearchBox value={search.q} onChange={(q) => onChange({ q })} label={t('jobs.list.search')} />}
      chips={[
        executorId && { key: 'executor', text: `${t('jobs.list.executor')}: ${executor}`, onRemove: () => onChange({ executorId: undefined }) },
        state && { key: 'state', text: t(`jobs.counts.state_${state}`), onRemove: () => onChange({ state: undefined }) },
        kind && { key: 'kind', text: t(`jobs.list.kind_${kind}`), onRemove: () => onChange({ kind: undefined }) },
        group && { key: 'group', text: t(`jobs.counts.by_${group}`), onRemove: () => onChange({ group: undefined }) },
        proposed && { key: 'proposed', alone: true, text: t('proposals.title'), onRemove: () => onChange({ proposed: undefined }) },
        handler && { key: 'handler', alone: true, text: t('jobs.list.handler', { handler }), onRemove: () => onChange({ handler: undefined }) },
        label && { key: 'label', alone: true, text: t('jobs.list.label', { label }), onRemove: () => onChange({ label: undefined }) },
      ]}
      onClear={isFiltered(search) ? onClear : undefined}
    >
      <ExecutorFilter value={executorId} onChange={(id) => onChange({ executorId: id })} label={t('jobs.list.executor')} />
      <Choice label={t('jobs.list.state')} value={state} onChange={(value) => onChange({ state: value })} options={JOB_STATES.map((value) => ({ value, label: t(`jobs.counts.state_${value}`) }))} />
      <Choice
        always
        label={t('jobs.list.kind')}
        value={kind ?? 'job'}
        onChange={(value) => onChange({ kind: value === 'job' ? undefined : value })}
        options={KINDS.map((value) => ({ value, label: t(`jobs.list.kind_${value}`) }))}
      />
      <Choice
        always
        named
        label={t('jobs.list.sort')}
        value={search.sort ?? 'name'}
        onChange={(value) => onChange({ sort: value === 'name' ? undefined : value })}
        options={JOB_SORTS.map((value) => ({ value, label: t(`jobs.week.sort_${value}`) }))}
      />
      <Choice label={t('jobs.counts.groupBy')} value={group} onChange={(value) => onChange({ group: value })} options={JOB_GROUPS.map((value) => ({ value, label: t(`jobs.counts.by_${value}`) }))} />
    </Filters>
  )
}
