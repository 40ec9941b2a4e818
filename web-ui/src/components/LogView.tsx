// The log of a run: follows the end until the reader scrolls up, filters,
// searches, links to lines. Only the lines in view are in the page.
import { DownloadOutlined, DownOutlined, UpOutlined } from '@ant-design/icons'
import { Button, Checkbox, Input, Select } from 'antd'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../api/endpoints'
import type { LogLine, RunDetail } from '../api/types'
import { lineOfHash } from '../lib/logFollow'
import { LEVELS, matchesText, passes } from '../lib/logText'
import { saveBlob } from '../lib/misc'
import { whyEmpty } from '../lib/why'
import { loadFlag, saveFlag } from '../lib/prefs'
import { useDebounced, useShowError } from './hooks'
import { LogLines } from './LogLines'
import { ErrorState } from './States'
import { useFollow } from './useFollow'
import { useRunLog } from './useRunLog'

const SEARCH_DELAY_MS = 150

function useFlag(key: string, fallback: boolean): [boolean, (value: boolean) => void] {
  const [value, setValue] = useState(() => loadFlag(key, fallback))
  return [
    value,
    (next) => {
      saveFlag(key, next)
      setValue(next)
    },
  ]
}

/** Matches of the search among the lines shown, and which one is current. */
function useMatches(lines: LogLine[], needle: string) {
  const [current, setCurrent] = useState(0)
  const matches = useMemo(
    () => (needle ? lines.flatMap((line, i) => (matchesText(line, needle) ? [i] : [])) : []),
    [lines, needle],
  )
  return { matches, current: matches.length === 0 ? -1 : Math.min(current, matches.length - 1), setCurrent }
}

export function LogView({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const { store, log } = useRunLog(run.id)
  const [minRank, setMinRank] = useState(0)
  const [attempt, setAttempt] = useState<number>()
  const [typed, setTyped] = useState('')
  const needle = useDebounced(typed.trim().toLowerCase(), SEARCH_DELAY_MS)
  const [wrap, setWrap] = useFlag('logWrap', true)
  const [times, setTimes] = useFlag('logTimes', true)
  const [target, setTarget] = useState(() => lineOfHash(location.hash))

  const all = minRank === 0 && attempt === undefined
  const lines = useMemo(() => (all ? log.lines : log.lines.filter((line) => passes(line, { minRank, attempt }))), [log.lines, all, minRank, attempt])
  const { matches, current, setCurrent } = useMatches(lines, needle)
  const follow = useFollow(lines.length, target === undefined, log.loaded && (log.lines.at(-1)?.n ?? 0) >= log.lastLine)

  const step = (by: number) => {
    if (matches.length === 0) return
    const next = (current + by + matches.length) % matches.length
    setCurrent(next)
    follow.stop()
    follow.scrollTo(matches[next] ?? 0)
  }
  const link = (n: number) => {
    history.replaceState(history.state, '', `#L${n}`)
    setTarget(n)
  }
  const download = async () => {
    try {
      saveBlob(await api.downloadLog(run.id), `run-${run.id}.log`)
    } catch (err) {
      showError(err)
    }
  }
  const hidden = log.lines.length - lines.length
  return (
    <section className="card flush" aria-label={t('runs.log.title')} aria-busy={!log.loaded}>
      <div className="card-head" style={{ margin: 0 }}>
        <h2>{t('runs.log.title')}</h2>
        <span className="muted small" role="status">
          {t('runs.log.lines', { count: log.lastLine })} ·{' '}
          {log.interrupted ? <span className="st-timeout">{t('runs.log.reconnecting')}</span> : log.complete ? t('runs.log.ended') : <span className="st-running">● {t('runs.log.live')}</span>}
        </span>
      </div>
      <div className="log-bar">
        <Checkbox checked={follow.following} onChange={follow.toggle}>
          {t('runs.log.follow')}
        </Checkbox>
        <Select
          aria-label={t('runs.log.level')}
          style={{ width: 140 }}
          value={minRank}
          onChange={setMinRank}
          options={LEVELS.map((level, rank) => ({ value: rank, label: rank === 0 ? t('runs.log.levelAll') : t('runs.log.levelAtLeast', { level }) }))}
        />
        {run.attempts.length > 1 && (
          <Select
            aria-label={t('runs.log.attempt')}
            style={{ width: 130 }}
            value={attempt ?? 0}
            onChange={(n) => setAttempt(n || undefined)}
            options={[{ value: 0, label: t('runs.log.attemptAll') }, ...run.attempts.map((one) => ({ value: one.number, label: t('runs.detail.attempt', { n: one.number }) }))]}
          />
        )}
        <Input
          type="search"
          allowClear
          style={{ width: 190 }}
          aria-label={t('runs.log.search')}
          placeholder={t('runs.log.search')}
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value)
            setCurrent(0)
          }}
          onPressEnter={(event) => step(event.shiftKey ? -1 : 1)}
        />
        {needle && (
          <span className="row tight">
            <span className="muted small num" role="status">
              {matches.length === 0 ? t('runs.log.noMatch') : t('runs.log.matches', { n: current + 1, total: matches.length })}
            </span>
            <Button size="small" icon={<UpOutlined />} aria-label={t('runs.log.previousMatch')} disabled={matches.length === 0} onClick={() => step(-1)} />
            <Button size="small" icon={<DownOutlined />} aria-label={t('runs.log.nextMatch')} disabled={matches.length === 0} onClick={() => step(1)} />
          </span>
        )}
        <span className="grow" />
        <Checkbox checked={wrap} onChange={(event) => setWrap(event.target.checked)}>
          {t('runs.log.wrap')}
        </Checkbox>
        <Checkbox checked={times} onChange={(event) => setTimes(event.target.checked)}>
          {t('runs.log.times')}
        </Checkbox>
        <Button icon={<DownloadOutlined />} disabled={log.lastLine === 0} onClick={() => void download()}>
          {t('runs.log.download')}
        </Button>
      </div>
      {log.error ? (
        <ErrorState error={log.error} />
      ) : (
        <LogLines
          log={log}
          lines={lines}
          follow={follow}
          needle={needle}
          currentMatch={matches[current]}
          target={target}
          onLink={link}
          wrap={wrap}
          times={times}
          emptyText={log.loaded ? (log.lines.length > 0 ? t('runs.log.emptyFilter') : whyEmpty(run, t)) : t('list.loading')}
          onLoadEarlier={() => store.loadEarlier(new AbortController().signal).catch(showError)}
        />
      )}
      {(hidden > 0 || log.truncated) && (
        <div className="log-bar small muted" style={{ borderTop: '1px solid var(--border)', borderBottom: 0 }}>
          {hidden > 0 && <span>{t('runs.log.filtered', { count: hidden })}</span>}
          {log.truncated && <span className="st-timeout">{t('runs.log.truncated')}</span>}
        </div>
      )}
    </section>
  )
}
