import './log.css'
import { DownOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import { memo, useEffect, useRef, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import type { LogLine } from '../../../api/types'
import type { LogSnapshot } from './logStore'
import { attrsText, levelRank, LINE_LIMIT, piecesOf } from './logText'
import { formatClock, formatWithZone } from '../../../lib/time'
import { useTimeStyle } from '../../../ui/timeStyle'
import type { Follow } from './useFollow'

/** So near to the last line held, what comes behind it is loaded. */
const NEAR_END = 50

/** As .log-scroll in styles.css. */
const MAX_HEIGHT_PX = 560
const EMPTY_HEIGHT_PX = 76

interface Props {
  log: LogSnapshot
  lines: LogLine[]
  follow: Follow
  needle: string
  /** Index among the lines of the match that is current. */
  currentMatch: number | undefined
  /** Number of the linked line. */
  target: number | undefined
  onLink: (n: number) => void
  /** To the end of the log. */
  onJump: () => void
  wrap: boolean
  times: boolean
  emptyText: string
  onLoadEarlier: () => Promise<unknown>
  onLoadLater: () => Promise<unknown>
}

export function LogLines(props: Props) {
  const { t } = useTranslation()
  const { log, lines, follow, target } = props
  const [loading, setLoading] = useState(false)
  const last = log.lines.at(-1)?.n ?? log.first
  const shown = useRef<number>(undefined)

  // The linked line comes into view once, when it has been loaded; when a filter
  // leaves it out, the one after it.
  useEffect(() => {
    if (target === undefined || shown.current === target) return
    const index = lines.findIndex((line) => line.n >= target)
    if (index < 0) return
    shown.current = target
    follow.scrollTo(index)
  }, [target, lines, follow])

  // A window in the middle of the log grows when the reader comes near its end.
  const asked = useRef<LogSnapshot>(undefined)
  const lastShown = follow.virtual.getVirtualItems().at(-1)?.index ?? 0
  const { onLoadLater } = props
  useEffect(() => {
    if (!log.loaded || log.atEnd || follow.following || lastShown < lines.length - NEAR_END || asked.current === log) return
    asked.current = log
    void onLoadLater()
  }, [log, lastShown, lines.length, follow.following, onLoadLater])

  const earlier = async () => {
    setLoading(true)
    follow.stop()
    await props.onLoadEarlier()
    setLoading(false)
  }
  return (
    <div className="log-box">
      {log.loaded && (log.first > 1 || !log.atEnd) && (
        <div className="log-bar small">
          <span className="muted">{t('runs.log.partial', { first: log.first, last })}</span>
          {log.first > 1 && (
            <Button size="small" loading={loading} onClick={() => void earlier()}>
              {t('runs.log.loadEarlier')}
            </Button>
          )}
        </div>
      )}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions, jsx-a11y/no-noninteractive-tabindex -- a scrolling region must be reachable by keyboard; the handlers only note that a person scrolls */}
      <div
        ref={follow.box}
        className="log-scroll"
        role="region"
        aria-label={t('runs.log.region')}
        tabIndex={0}
        // A finished short log needs no tall box; a live one keeps its size, so that nothing below moves.
        style={log.complete ? { height: Math.min(Math.max(follow.virtual.getTotalSize() + 12, EMPTY_HEIGHT_PX), MAX_HEIGHT_PX) } : undefined}
        onScroll={follow.onScroll}
        onWheel={follow.onIntent}
        onTouchMove={follow.onIntent}
        onPointerDown={follow.onIntent}
        onPointerMove={(event) => event.buttons > 0 && follow.onIntent()}
        onKeyDown={follow.onIntent}
      >
        {lines.length === 0 ? (
          <p className="muted inset-wide own-font">
            {props.emptyText}
          </p>
        ) : (
          <div style={{ height: follow.virtual.getTotalSize(), position: 'relative', width: '100%' }}>
            {follow.virtual.getVirtualItems().map((item) => {
              const line = lines[item.index]
              return line ? (
                <div
                  key={item.key}
                  ref={follow.virtual.measureElement}
                  data-index={item.index}
                  style={{ position: 'absolute', top: 0, left: 0, minWidth: '100%', width: props.wrap ? '100%' : undefined, transform: `translateY(${item.start}px)` }}
                >
                  <Line
                    line={line}
                    needle={props.needle}
                    isTarget={line.n === target}
                    onLink={props.onLink}
                    wrap={props.wrap}
                    times={props.times}
                    isCurrent={item.index === props.currentMatch}
                  />
                </div>
              ) : null
            })}
          </div>
        )}
      </div>
      {!follow.following && lines.length > 0 && (
        <Button className="log-jump" type="primary" shape="round" icon={<DownOutlined />} onClick={props.onJump}>
          {follow.unseen > 0 ? t('runs.log.newLines', { count: follow.unseen }) : t('runs.log.jump')}
        </Button>
      )}
    </div>
  )
}

const TONE = ['queued', 'running', 'timeout', 'failed'] as const

interface LineProps {
  line: LogLine
  needle: string
  isTarget: boolean
  onLink: (n: number) => void
  wrap: boolean
  times: boolean
  isCurrent: boolean
}

/** A scroll renders the box in each frame. The lines that stay are not rendered again. */
const Line = memo(function Line({ line, needle, isTarget, onLink, wrap, times, isCurrent }: LineProps) {
  const { t } = useTranslation()
  const attrs = attrsText(line)
  const style = useTimeStyle()
  const whole = formatWithZone(line.at, style === 'utc' ? 'UTC' : undefined, true)
  const names = ['log-line', wrap && 'wrap', isTarget && 'target'].filter(Boolean).join(' ')
  return (
    <div className={names} data-line={line.n}>
      <a
        className="ln"
        href={`#L${line.n}`}
        aria-label={t('runs.log.permalink', { n: line.n })}
        onClick={(event) => {
          event.preventDefault()
          onLink(line.n)
        }}
      >
        {line.n}
      </a>
      {times && (
        <time className="ts" dateTime={line.at} title={whole}>
          {style === 'relative' ? formatClock(line.at) : whole}
        </time>
      )}
      <span className={`lv st-${TONE[levelRank(line.level)] ?? 'queued'}`}>{line.level}</span>
      <span className="grow">
        <Message text={line.msg} needle={needle} isCurrent={isCurrent} />
        {attrs && (
          <span className="muted">
            {'  '}
            <Pieces text={attrs} needle={needle} isCurrent={isCurrent} />
          </span>
        )}
      </span>
    </div>
  )
})

/** A very long line is cut until it is asked for: laying it out blocks the page. */
function Message({ text, needle, isCurrent }: { text: string; needle: string; isCurrent: boolean }) {
  const { t } = useTranslation()
  const [whole, setWhole] = useState(false)
  const cut = !whole && text.length > LINE_LIMIT
  return (
    <>
      <Pieces text={cut ? text.slice(0, LINE_LIMIT) : text} needle={needle} isCurrent={isCurrent} />
      {cut && (
        <Button size="small" type="link" onClick={() => setWhole(true)}>
          {t('runs.log.longLine', { n: text.length - LINE_LIMIT })}
        </Button>
      )}
    </>
  )
}

function Pieces({ text, needle, isCurrent }: { text: string; needle: string; isCurrent: boolean }): ReactNode {
  return piecesOf(text, needle).map((piece, i) => {
    const style = piece.colour || piece.bold ? { color: piece.colour, fontWeight: piece.bold ? 700 : undefined } : undefined
    // The pieces of a line never move, so their place is their identity.
    return piece.match ? (
      <mark key={i} className={isCurrent ? 'current' : undefined} style={style}>
        {piece.text}
      </mark>
    ) : (
      <span key={i} style={style}>
        {piece.text}
      </span>
    )
  })
}
