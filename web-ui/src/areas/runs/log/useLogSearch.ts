// Stepping through the lines with a text: among those in the page first, then
// the server looks in the rest of the log.
import { useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Id, LogLevel, LogLine } from '../../../api/types'
import { findLine, LOG_END, type LogSnapshot } from './logStore'
import { matchesText } from './logText'
import { useShowError } from '../../../ui/hooks'
import { logOf } from './useRunLog'

export interface LogSearch {
  active: boolean
  /** The server is looking. */
  busy: boolean
  /** There is no match anywhere. */
  none: boolean
  label: string
  /** Index among the lines of the match that is current. */
  at: number | undefined
  step: (by: 1 | -1) => void
  /** As step, with the text as it is typed now. */
  enter: (by: 1 | -1) => void
  /** The text has changed. */
  restart: () => void
}

interface Params {
  runId: Id
  log: LogSnapshot
  lines: LogLine[]
  /** The text that is searched, and as it is typed. The search follows after a pause, or with searchNow. */
  text: string
  typed: string
  searchNow: () => void
  level: LogLevel | undefined
  jump: (n: number) => void
  show: (index: number) => void
  stop: () => void
}

export function useLogSearch({ runId, log, lines, text, typed, searchNow, level, jump, show, stop }: Params): LogSearch {
  const { t } = useTranslation()
  const needle = text.toLowerCase()
  const showError = useShowError()
  const [line, setLine] = useState<number>()
  const [busy, setBusy] = useState(false)
  const [missing, setMissing] = useState(false)
  const looking = useRef<AbortController>(null)
  const matches = useMemo(() => (needle ? lines.flatMap((one, i) => (matchesText(one, needle) ? [i] : [])) : []), [lines, needle])
  const whole = log.first <= 1 && log.atEnd
  const found = matches.findIndex((i) => lines[i]?.n === line)
  const current = found >= 0 ? found : matches.length > 0 ? 0 : -1

  const go = (n: number) => {
    setLine(n)
    jump(n)
  }
  const look = async (by: 1 | -1) => {
    looking.current?.abort()
    const controller = new AbortController()
    looking.current = controller
    setBusy(true)
    try {
      const query = { q: text, ...(level && { level }) }
      const from = by > 0 ? (lines.at(-1)?.n ?? 0) : (lines[0]?.n ?? LOG_END)
      const n =
        (await findLine(logOf(runId), from, by > 0, query, controller.signal)) ?? // then from the other end
        (await findLine(logOf(runId), by > 0 ? 0 : LOG_END, by > 0, query, controller.signal))
      if (controller.signal.aborted) return
      setMissing(n === undefined)
      if (n !== undefined) go(n)
    } catch (err) {
      if (!controller.signal.aborted) showError(err)
    } finally {
      if (looking.current === controller) setBusy(false)
    }
  }
  const step = (by: 1 | -1) => {
    stop()
    const next = found >= 0 ? current + by : by > 0 ? 0 : matches.length - 1
    const inside = matches[next] ?? (whole ? matches[(next + matches.length) % Math.max(matches.length, 1)] : undefined)
    if (inside === undefined) {
      if (!whole) void look(by)
      return
    }
    setLine(lines[inside]?.n)
    show(inside)
  }
  // Enter before the pause is over: the step follows with the matches of the new text.
  const entered = useRef<1 | -1>(undefined)
  useEffect(() => {
    const by = entered.current
    if (by === undefined || text !== typed) return
    entered.current = undefined
    step(by)
  })
  const total = whole ? String(matches.length) : `${matches.length}+`
  return {
    active: needle !== '',
    busy,
    none: matches.length === 0 && (whole || missing),
    label: matches.length > 0 ? t('runs.log.matches', { n: current + 1, total }) : whole || missing ? t('runs.log.noMatch') : t('runs.log.noMatchLoaded'),
    at: matches[current],
    step,
    enter: (by) => {
      if (text === typed) {
        step(by)
        return
      }
      entered.current = by
      searchNow()
    },
    restart: () => {
      entered.current = undefined
      looking.current?.abort()
      setBusy(false)
      setMissing(false)
      setLine(undefined)
    },
  }
}
