// Which runs a list shows, on the page of all runs and on that of a job.
import { useTranslation } from 'react-i18next'
import { queries } from '../../api/queries'
import type { Cause, RunState } from '../../api/types'
import { useQuery } from '../../api/useQuery'
import { CAUSES, isFiltered, RANGES, RUN_STATES, splitList, type Range, type RunsSearch } from '../../lib/search'
import { Choice, Choices } from '../../ui/Choice'
import { ExecutorFilter, useExecutorName } from '../../ui/ExecutorFilter'
import { Filters } from '../../ui/Filters'
import { useDraftSearch } from '../../ui/hooks'
import { later } from '../../ui/later'
import { SearchBox } from '../../ui/SearchBox'
import { RunStateChip } from '../../ui/StateChip'
import type { Controlled } from './RunTable'

const RangePicker = later(() => import('./RangePicker'))

function anHourAgo(): string {
  const minute = 60_000
  return new Date(Math.floor(Date.now() / minute) * minute - 60 * minute).toISOString()
}

export function RunFilters({ search: committed, onChange: commit, jobId }: Controlled) {
  const { t } = useTranslation()
  const [search, onChange] = useDraftSearch(committed, commit)
  const set = (change: Partial<RunsSearch>) => onChange({ ...search, cursor: undefined, ...change })
  const executor = useExecutorName(search.executorId)
  const custom = Boolean(search.from ?? search.to)
  const states = splitList<RunState>(search.state)
  const { cause, executorId, range, instanceId, fingerprint } = search
  return (
    <Filters
      label={t('runs.list.title')}
      search={!jobId && <SearchBox value={search.q} onChange={(q) => set({ q })} label={t('runs.list.jobSearch')} />}
      chips={[
        ...states.map((state) => ({ key: state, text: t(`runs.state.${state}`), onRemove: () => set({ state: states.filter((one) => one !== state).join(',') || undefined }) })),
        cause && { key: 'cause', text: t(`runs.cause.${cause}`), onRemove: () => set({ cause: undefined }) },
        !jobId && executorId && { key: 'executor', text: `${t('runs.list.executor')}: ${executor}`, onRemove: () => set({ executorId: undefined }) },
        (custom || range) && { key: 'time', text: t(`runs.range.${custom ? 'custom' : (range as Range)}`), onRemove: () => set({ range: undefined, from: undefined, to: undefined }) },
        !jobId && search.jobId && { key: 'job', alone: true, text: <JobFilterText id={search.jobId} />, onRemove: () => set({ jobId: undefined }) },
        instanceId && { key: 'instance', alone: true, text: <InstanceFilterText id={instanceId} />, onRemove: () => set({ instanceId: undefined }) },
        fingerprint && { key: 'error', alone: true, text: t('errorGroups.filter', { fingerprint }), help: t('errorGroups.filterHelp'), onRemove: () => set({ fingerprint: undefined }) },
      ]}
      onClear={isFiltered(search) ? () => onChange({}) : undefined}
    >
      <Choices
        label={t('field.state')}
        values={states}
        onChange={(chosen) => set({ state: RUN_STATES.filter((one) => chosen.includes(one)).join(',') || undefined })}
        options={RUN_STATES.map((state) => ({ value: state, label: t(`runs.state.${state}`), draw: <RunStateChip state={state} /> }))}
      />
      <Choice label={t('runs.list.cause')} value={cause} onChange={(value: Cause | undefined) => set({ cause: value })} options={CAUSES.map((value) => ({ value, label: t(`runs.cause.${value}`) }))} />
      {!jobId && <ExecutorFilter value={executorId} onChange={(id) => set({ executorId: id })} label={t('runs.list.executor')} />}
      <Choice
        label={t('runs.list.time')}
        value={custom ? 'custom' : range}
        onChange={(value: Range | 'custom' | undefined) => (value === 'custom' ? set({ range: undefined, from: anHourAgo() }) : set({ range: value, from: undefined, to: undefined }))}
        options={[...RANGES, 'custom' as const].map((value) => ({ value, label: t(`runs.range.${value}`) }))}
      />
      {custom && <RangePicker from={search.from} to={search.to} onChange={(from, to) => set({ from, to })} />}
    </Filters>
  )
}

function JobFilterText({ id }: { id: string }) {
  const { t } = useTranslation()
  const job = useQuery({ ...queries.job(id), refetchInterval: false })
  return <>{t('runs.list.ofJob', { name: job.data?.name ?? id })}</>
}

/** Runs name the instance that they were sent to. */
function InstanceFilterText({ id }: { id: string }) {
  const { t } = useTranslation()
  const runs = useQuery({ ...queries.runs({ instanceId: id, limit: 1 }), refetchInterval: false })
  const instance = runs.data?.items.find((run) => run.instance?.id === id)?.instance
  return <>{t('runs.list.ofInstance', { name: instance?.name ?? id })}</>
}
