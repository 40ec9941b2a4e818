import { FilterOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Button } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { NotFired, neverFired } from './NotFired'
import { timerApi, timerQueries } from './timers'
import { isFinal, queryClient } from '../../api/queries'
import type { Timer } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { Choice } from '../../ui/Choice'
import { Filters } from '../../ui/Filters'
import { useDraftSearch } from '../../ui/hooks'
import { later } from '../../ui/later'
import { Page } from '../../ui/Page'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { SearchBox } from '../../ui/SearchBox'
import { TimerStateChip } from '../../ui/StateChip'
import { Blank } from '../../ui/States'
import { TimerStatistics } from './TimerStatistics'
import { RelativeTime } from '../../ui/TimeText'
import { useDanger } from '../../ui/useDanger'
import { isFiltered, TIMER_STATES, type TimersSearch } from '../../lib/search'

const TimerDialog = later(() => import('./TimerDialog'))

const nameOfHandler = (one: { executor: string; handler: string }) => `${one.executor}/${one.handler}`
const nameOf = (one: Timer) => `${one.executor}/${one.handler}/${one.key}`

/** Asks before it cancels. */
function useCancel(): (timer: Timer, after?: () => void) => void {
  const { t } = useTranslation()
  const danger = useDanger()
  return (timer, after) =>
    danger({
      title: t('timers.cancelTitle', { key: timer.key }),
      content: t('timers.cancelHelp'),
      action: t('timers.cancel'),
      cancel: t('timers.keep'),
      work: () => timerApi.cancelTimer(timer),
      done: t('timers.cancelled'),
      after: () => {
        void queryClient.invalidateQueries({ queryKey: ['timers'] })
        after?.()
      },
    })
}

/** Single runs at an instant that applications have set. */
export function TimersPage() {
  const { t } = useTranslation()
  const committed = useSearch({ from: '/app/timers' })
  const navigate = useNavigate()
  const [search, setSearch] = useDraftSearch(committed, (next: TimersSearch) => void navigate({ to: '/timers', search: next }))
  const timers = useQuery(timerQueries.timers({ ...committed }))
  const counts = useQuery(timerQueries.timerCount())
  const [shown, setShown] = useState<Timer>()
  const cancel = useCancel()
  // A changed filter starts at the first page.
  const go = (change: Partial<TimersSearch>) => setSearch({ ...search, cursor: undefined, ...change })
  const filtered = isFiltered(search)
  const columns: Column<Timer>[] = [
    {
      key: 'key',
      title: t('timers.key'),
      kind: 'title',
      render: (one) => (
        <Button type="link" className="no-padding h-auto wraps start any-wrap" onClick={() => setShown(one)}>
          {one.key}
        </Button>
      ),
    },
    { key: 'handler', title: t('timers.handler'), render: (one) => <span className="mono">{`${one.executor}/${one.handler}`}</span> },
    { key: 'state', title: t('field.state'), render: (one) => <TimerStateChip state={one.state} /> },
    { key: 'fires', title: t('timers.firesAt'), render: (one) => (neverFired(one) ? <NotFired at={one.fireAt} /> : <RelativeTime at={one.fireAt} />) },
    { key: 'set', title: t('timers.setAt'), render: (one) => <RelativeTime at={one.createdAt} /> },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) =>
        isFinal(one.state) ? null : (
          <ActionButton size="small" danger onClick={() => cancel(one)} aria-label={`${t('timers.cancel')}: ${one.key}`}>
            {t('timers.cancel')}
          </ActionButton>
        ),
    },
  ]
  const handlers = counts.data?.byHandler ?? []
  const handler = search.executor && search.handler ? `${search.executor}/${search.handler}` : undefined
  return (
    <Page title={t('timers.title')} sub={counts.data ? t('timers.pendingCount', { count: counts.data.pending }) : <>&nbsp;</>}>
      <Filters
        label={t('timers.title')}
        search={<SearchBox value={search.keyPrefix} onChange={(keyPrefix) => go({ keyPrefix })} label={t('timers.search')} />}
        chips={[
          handler && { key: 'handler', text: handler, onRemove: () => go({ executor: undefined, handler: undefined }) },
          search.state && { key: 'state', text: t(`timers.list.${search.state}`), onRemove: () => go({ state: undefined }) },
          search.label && { key: 'label', text: `${t('timers.label')}: ${search.label}`, onRemove: () => go({ label: undefined }) },
        ]}
        onClear={filtered ? () => setSearch({}) : undefined}
      >
        <Choice
          label={t('timers.handler')}
          value={handler}
          onChange={(value) => {
            const one = handlers.find((each) => nameOfHandler(each) === value)
            go({ executor: one?.executor, handler: one?.handler })
          }}
          options={handlers.map((one) => ({ value: nameOfHandler(one), label: `${nameOfHandler(one)} (${one.pending})` }))}
        />
        <Choice
          always
          label={t('field.state')}
          value={search.state ?? 'pending'}
          onChange={(state) => go({ state: state === 'pending' ? undefined : state })}
          options={TIMER_STATES.map((value) => ({ value, label: t(`timers.list.${value}`) }))}
        />
        <SearchBox className="f-item" value={search.label} onChange={(label) => go({ label })} label={t('timers.label')} />
      </Filters>
      <div className="card flush">
        <ResourceTable
          label={t('timers.title')}
          columns={columns}
          rows={timers.data?.items}
          rowKey={(one) => one.run ?? nameOf(one)}
          error={timers.error}
          onRetry={() => void timers.refetch()}
          updatedAt={timers.dataUpdatedAt}
          empty={filtered ? <NothingMatches search={search} onGo={go} onClear={() => setSearch({})} /> : <Blank title={t('timers.emptyTitle')} help={t('timers.emptyHelp')} />}
          pager={<Pager cursor={search.cursor} nextCursor={timers.data?.nextCursor} onGo={(cursor) => go({ cursor })} />}
        />
      </div>
      <div className="above-4">
        <TimerStatistics executor={search.executor} handler={search.handler} />
      </div>
      {shown && <TimerDialog timer={shown} onCancel={cancel} onClose={() => setShown(undefined)} />}
    </Page>
  )
}

/** The list is one of three; what is searched for may be in another one. */
function NothingMatches({ search, onGo, onClear }: { search: TimersSearch; onGo: (change: Partial<TimersSearch>) => void; onClear: () => void }) {
  const { t } = useTranslation()
  const shown = search.state ?? 'pending'
  return (
    <Blank icon={<FilterOutlined />} title={t('timers.noneMatch', { list: t(`timers.list.${shown}`) })} help={t('timers.noneMatchHelp')}>
      {TIMER_STATES.filter((state) => state !== shown).map((state) => (
        <Button key={state} onClick={() => onGo({ state: state === 'pending' ? undefined : state })}>
          {t('timers.lookIn', { list: t(`timers.list.${state}`) })}
        </Button>
      ))}
      <Button type="link" onClick={onClear}>
        {t('action.clearFilters')}
      </Button>
    </Blank>
  )
}
