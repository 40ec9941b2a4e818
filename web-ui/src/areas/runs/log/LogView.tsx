// The log of a run: follows the end until the reader scrolls up, filters,
// searches, jumps and links to lines. Only the lines in view are in the page.
import './log.css'
import { useCallback, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../api/endpoints'
import type { RunDetail } from '../../../api/types'
import { lineOfHash } from './logFollow'
import type { LogSnapshot } from './logStore'
import { LEVELS, passes } from './logText'
import { saveBlob } from '../../../lib/misc'
import { whyEmpty } from '../../../lib/why'
import { loadFlag, saveFlag } from '../../../lib/prefs'
import { useDebouncedNow, useShowError } from '../../../ui/hooks'
import { LogBar } from './LogBar'
import { LogLines } from './LogLines'
import { ErrorState } from '../../../ui/States'
import { StateIcon } from '../../../ui/StateIcon'
import { useFollow } from './useFollow'
import { useLogSearch } from './useLogSearch'
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

/** How many lines there are; "complete" is said of a log in which none is missing. */
export function LogCount({ log }: { log: LogSnapshot }) {
  const { t } = useTranslation()
  const { counts } = log
  const partly = counts && counts.missing.length > 0
  const whole = counts ? !partly : log.complete && !log.truncated
  return (
    <>
      {partly ? t('runs.log.linesOf', { kept: counts.kept, count: counts.written }) : t('runs.log.lines', { count: log.lastLine })}
      {partly && counts.missing.map((one) => <span key={one.why}>{`, ${t('runs.log.missing', { count: one.lines })}: ${t(`runs.log.missing_${one.why}`)}`}</span>)} ·{' '}
      {log.interrupted ? (
        <span className="st-timeout">{t('runs.log.reconnecting')}</span>
      ) : !log.complete ? (
        <span className="state st-running"><StateIcon name="dot" /> {t('runs.log.live')}</span>
      ) : whole ? (
        t('runs.log.ended')
      ) : (
        <span className="st-timeout">{t('runs.log.incomplete')}</span>
      )}
    </>
  )
}

export function LogView({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [minRank, setMinRank] = useState(0)
  const [attempt, setAttempt] = useState<number>()
  const [typed, setTyped] = useState('')
  const [text, searchNow] = useDebouncedNow(typed.trim(), SEARCH_DELAY_MS)
  const needle = text.toLowerCase()
  const [onlyMatches, setOnlyMatches] = useFlag('logOnlyMatches', false)
  const [wrap, setWrap] = useFlag('logWrap', true)
  const [times, setTimes] = useFlag('logTimes', true)
  // The line that is marked, and the one around which the window opened; a link
  // to a line in view marks it and loads nothing.
  const [target, setTarget] = useState(() => lineOfHash(location.hash))
  const [around, setAround] = useState(target)

  const level = minRank > 0 ? LEVELS[minRank] : undefined
  const { store, log } = useRunLog(run.id, level, onlyMatches && needle ? text : undefined, around)
  const lines = useMemo(() => (attempt === undefined ? log.lines : log.lines.filter((line) => passes(line, { minRank: 0, attempt }))), [log.lines, attempt])
  const follow = useFollow(lines.length, target === undefined, log.loaded && log.atEnd, store)
  const link = useCallback((n: number) => {
    history.replaceState(history.state, '', `#L${n}`)
    setTarget(n)
  }, [])
  const jump = (n: number) => {
    link(n)
    follow.stop()
    const index = lines.findIndex((line) => line.n === n)
    if (index >= 0) follow.scrollTo(index)
    else setAround(n)
  }
  const search = useLogSearch({ runId: run.id, log, lines, text, typed: typed.trim(), searchNow, level, jump, show: follow.scrollTo, stop: follow.stop })
  const toEnd = () => {
    if (!log.atEnd) {
      setTarget(undefined)
      setAround(undefined)
    }
    follow.jump()
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
      <div className="card-head no-margin">
        <h2>{t('runs.log.title')}</h2>
        <span className="muted small" role="status">
          <LogCount log={log} />
        </span>
      </div>
      <LogBar
        following={follow.following}
        onFollow={() => (follow.following ? follow.stop() : toEnd())}
        minRank={minRank}
        onMinRank={setMinRank}
        attempts={run.attempts.map((one) => one.number)}
        attempt={attempt}
        onAttempt={setAttempt}
        typed={typed}
        onTyped={setTyped}
        search={search}
        onlyMatches={onlyMatches}
        onOnlyMatches={setOnlyMatches}
        lastLine={log.lastLine}
        onJump={jump}
        wrap={wrap}
        onWrap={setWrap}
        times={times}
        onTimes={setTimes}
        onDownload={() => void download()}
      />
      {log.error ? (
        <ErrorState error={log.error} />
      ) : (
        <LogLines
          log={log}
          lines={lines}
          follow={follow}
          needle={needle}
          currentMatch={search.at}
          target={target}
          onLink={link}
          onJump={toEnd}
          wrap={wrap}
          times={times}
          emptyText={log.loaded ? (log.lastLine > 0 ? t('runs.log.emptyFilter') : whyEmpty(run, t)) : t('list.loading')}
          onLoadEarlier={() => store.loadEarlier(new AbortController().signal).catch(showError)}
          onLoadLater={() => store.loadLater(new AbortController().signal).catch(showError)}
        />
      )}
      {(hidden > 0 || log.truncated && !log.counts) && (
        <div className="log-bar log-foot small muted">
          {hidden > 0 && <span>{t('runs.log.filtered', { count: hidden })}</span>}
          {log.truncated && !log.counts && <span className="st-timeout">{t('runs.log.truncated')}</span>}
        </div>
      )}
    </section>
  )
}
