import { FilterOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Button, Input, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { timerApi, timerQueries } from './timers'
import { isFinal, queryClient } from '../../api/queries'
import type { Timer } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { Dialog } from '../../ui/Dialog'
import { Fact } from '../../ui/Fact'
import { useDraftSearch } from '../../ui/hooks'
import { JsonView } from '../../ui/input/JsonView'
import { Page } from '../../ui/Page'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { SearchBox } from '../../ui/SearchBox'
import { TimerStateChip } from '../../ui/StateChip'
import { Blank } from '../../ui/States'
import { TimerStatistics } from './TimerStatistics'
import { AbsoluteTime, RelativeTime } from '../../ui/TimeText'
import { useDanger } from '../../ui/useDanger'
import { serverNow } from '../../lib/connection'
import { isFiltered, TIMER_STATES, type TimersSearch } from '../../lib/search'
import { timerWhy } from '../../lib/why'

const nameOf = (one: Timer) => `${one.executor}/${one.handler}/${one.key}`

/** It ended before its handler was to run. A countdown to its time would promise a run. */
const neverFired = ({ state, fireAt }: Timer) => state === 'cancelled' || state === 'missed' || (isFinal(state) && Date.parse(fireAt) > serverNow())

function NotFired({ at }: { at: string }) {
  const { t } = useTranslation()
  return (
    <span className="muted">
      {t('timers.wasToFire')}: <AbsoluteTime at={at} />
    </span>
  )
}

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
  return (
    <Page title={t('timers.title')} sub={counts.data && t('timers.pendingCount', { count: counts.data.pending })}>
      <div className="filters" role="search" aria-label={t('timers.title')}>
        <SearchBox value={search.keyPrefix} onChange={(keyPrefix) => go({ keyPrefix })} label={t('timers.search')} />
        <Select
          className="f-item"
          allowClear
          aria-label={t('timers.handler')}
          placeholder={t('timers.handler')}
          value={search.executor && search.handler ? `${search.executor}/${search.handler}` : undefined}
          onChange={(value?: string) => {
            const one = handlers.find((each) => `${each.executor}/${each.handler}` === value)
            go({ executor: one?.executor, handler: one?.handler })
          }}
          options={handlers.map((one) => ({ value: `${one.executor}/${one.handler}`, label: `${one.executor}/${one.handler} (${one.pending})` }))}
        />
        <Select
          className="f-item"
          aria-label={t('field.state')}
          value={search.state ?? 'pending'}
          onChange={(state: (typeof TIMER_STATES)[number]) => go({ state: state === 'pending' ? undefined : state })}
          options={TIMER_STATES.map((value) => ({ value, label: t(`timers.list.${value}`) }))}
        />
        <Input.Search
          key={search.label ?? ''}
          className="f-item"
          allowClear
          aria-label={t('timers.label')}
          placeholder={t('timers.label')}
          defaultValue={search.label}
          onSearch={(label) => go({ label: label.trim() || undefined })}
        />
        {filtered && (
          <Button type="link" onClick={() => setSearch({})}>
            {t('action.clearFilters')}
          </Button>
        )}
      </div>
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

/** Who has set it, for when, its run, and why it did not run. */
export function TimerDialog({ timer, onCancel, onClose }: { timer: Timer; onCancel: (timer: Timer, after?: () => void) => void; onClose: () => void }) {
  const { t } = useTranslation()
  const why = timerWhy(timer, t)
  return (
    <Dialog
      title={timer.key}
      width={640}
      onCancel={onClose}
      footer={[
        !isFinal(timer.state) && (
          <ActionButton key="cancel" danger onClick={() => onCancel(timer, onClose)}>
            {t('timers.cancel')}
          </ActionButton>
        ),
        <Button key="close" onClick={onClose}>
          {t('action.close')}
        </Button>,
      ]}
    >
      <dl className="facts">
        <Fact label={t('field.state')}>
          <TimerStateChip state={timer.state} />
        </Fact>
        <Fact label={t('timers.handler')}>
          <span className="mono">{`${timer.executor}/${timer.handler}`}</span>
        </Fact>
        <Fact label={neverFired(timer) ? t('timers.wasToFire') : isFinal(timer.state) ? t('runs.list.fireAt') : t('timers.firesAt')}>
          <AbsoluteTime at={timer.fireAt} ms />
        </Fact>
        <Fact label={t('timers.setAt')}>
          <AbsoluteTime at={timer.createdAt} ms />
        </Fact>
        <Fact label={t('timers.setBy')}>{timer.createdBy}</Fact>
        <Fact label={t('timers.run')}>
          {timer.run ? (
            <Link to="/runs/$runId" params={{ runId: timer.run }} className="mono">
              {timer.run}
            </Link>
          ) : (
            t('timers.noRun')
          )}
        </Fact>
        {timer.labels.length > 0 && <Fact label={t('timers.labels')}>{timer.labels.join(', ')}</Fact>}
        {timer.note && <Fact label={t('timers.note')}>{timer.note}</Fact>}
        {why && <Fact label={t('timers.why')}>{why}</Fact>}
      </dl>
      <div className="above-3">
        <div className="muted small">{t('timers.input')}</div>
        <JsonView value={timer.input} label={t('timers.input')} empty={t('timers.noInput')} />
      </div>
    </Dialog>
  )
}
