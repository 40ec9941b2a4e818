import { useQuery } from '../../api/useQuery'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Button, Select } from 'antd'
import { lazy, Suspense } from 'react'
import { useTranslation } from 'react-i18next'
import { queries } from '../../api/queries'
import type { Cause, RunState } from '../../api/types'
import { ExecutorSelect } from '../../ui/ExecutorSelect'
import { useDraftSearch } from '../../ui/hooks'
import { Page } from '../../ui/Page'
import { SearchBox } from '../../ui/SearchBox'
import { RunStateChip } from '../../ui/StateChip'
import { RunBars } from './RunBars'
import { RunTable, type Controlled } from './RunTable'
import { loadChunk } from '../../lib/chunk'
import { CAUSES, isFiltered, RANGES, RUN_STATES, splitList, type Range, type RunsSearch } from '../../lib/search'

const RangePicker = lazy(() => loadChunk(() => import('./RangePicker')))

function anHourAgo(): string {
  const minute = 60_000
  return new Date(Math.floor(Date.now() / minute) * minute - 60 * minute).toISOString()
}

export function RunsPage() {
  const { t } = useTranslation()
  const search = useSearch({ from: '/app/runs' })
  const navigate = useNavigate()
  const go = (change: RunsSearch) => void navigate({ to: '/runs', search: change })
  return (
    <Page title={t('runs.list.title')}>
      <RunFilters search={search} onChange={go} />
      <RunBars search={search} onChange={go} />
      <RunTable search={search} onChange={go} />
    </Page>
  )
}

export function RunFilters({ search: committed, onChange: commit, jobId }: Controlled) {
  const { t } = useTranslation()
  const [search, onChange] = useDraftSearch(committed, commit)
  const set = (change: Partial<RunsSearch>) => onChange({ ...search, cursor: undefined, ...change })
  const custom = Boolean(search.from ?? search.to)
  return (
    <div className="filters" role="search" aria-label={t('runs.list.title')}>
      {!jobId && <SearchBox value={search.q} onChange={(q) => set({ q })} label={t('runs.list.jobSearch')} />}
      <Select
        className="f-item wide"
        mode="multiple"
        allowClear
        maxTagCount="responsive"
        showSearch={{ optionFilterProp: 'label' }}
        aria-label={t('field.state')}
        placeholder={t('field.state')}
        value={splitList<RunState>(search.state)}
        onChange={(states: RunState[]) => set({ state: RUN_STATES.filter((one) => states.includes(one)).join(',') || undefined })}
        options={RUN_STATES.map((state) => ({ value: state, label: t(`runs.state.${state}`) }))}
        optionRender={(option) => <RunStateChip state={option.value as RunState} />}
      />
      <Select
        className="f-item"
        allowClear
        aria-label={t('runs.list.cause')}
        placeholder={t('runs.list.cause')}
        value={search.cause}
        onChange={(cause: Cause | undefined) => set({ cause })}
        options={CAUSES.map((cause) => ({ value: cause, label: t(`runs.cause.${cause}`) }))}
      />
      {!jobId && (
        <div className="f-item">
          <ExecutorSelect
            allowClear
            value={search.executorId}
            onChange={(executorId) => set({ executorId })}
            label={t('runs.list.executor')}
            placeholder={t('runs.list.executor')}
          />
        </div>
      )}
      <Select
        className="f-item"
        allowClear
        aria-label={t('runs.list.time')}
        placeholder={t('runs.list.time')}
        value={custom ? 'custom' : search.range}
        onChange={(range: Range | 'custom' | undefined) =>
          range === 'custom'
            ? set({ range: undefined, from: anHourAgo() })
            : set({ range, from: undefined, to: undefined })
        }
        options={[...RANGES, 'custom' as const].map((range) => ({ value: range, label: t(`runs.range.${range}`) }))}
      />
      {custom && (
        <Suspense fallback={null}>
          <RangePicker from={search.from} to={search.to} onChange={(from, to) => set({ from, to })} />
        </Suspense>
      )}
      {!jobId && search.jobId && (
        <Button onClick={() => set({ jobId: undefined })}>
          <JobFilterText id={search.jobId} /> ✕
        </Button>
      )}
      {search.instanceId && (
        <Button onClick={() => set({ instanceId: undefined })}>
          <InstanceFilterText id={search.instanceId} /> ✕
        </Button>
      )}
      {search.fingerprint && (
        <Button title={t('errorGroups.filterHelp')} onClick={() => set({ fingerprint: undefined })}>
          {t('errorGroups.filter', { fingerprint: search.fingerprint })} ✕
        </Button>
      )}
      {isFiltered(search) && (
        <Button type="link" onClick={() => onChange({})}>
          {t('action.clearFilters')}
        </Button>
      )}
    </div>
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
