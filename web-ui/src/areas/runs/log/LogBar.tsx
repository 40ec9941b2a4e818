// What a reader can ask of a log: follow, level, attempt, text, line.
import './log.css'
import { DownloadOutlined, DownOutlined, UpOutlined } from '@ant-design/icons'
import { Button, Checkbox, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { LEVELS } from './logText'
import type { LogSearch } from './useLogSearch'

interface Props {
  following: boolean
  onFollow: () => void
  minRank: number
  onMinRank: (rank: number) => void
  attempts: number[]
  attempt: number | undefined
  onAttempt: (n: number | undefined) => void
  typed: string
  onTyped: (text: string) => void
  search: LogSearch
  onlyMatches: boolean
  onOnlyMatches: (on: boolean) => void
  lastLine: number
  onJump: (n: number) => void
  wrap: boolean
  onWrap: (on: boolean) => void
  times: boolean
  onTimes: (on: boolean) => void
  onDownload: () => void
}

export function LogBar(props: Props) {
  const { t } = useTranslation()
  const { search } = props
  return (
    <div className="log-bar">
      <Checkbox checked={props.following} onChange={props.onFollow}>
        {t('runs.log.follow')}
      </Checkbox>
      <select className="native-select" aria-label={t('runs.log.level')} value={props.minRank} onChange={(event) => props.onMinRank(Number(event.target.value))}>
        {LEVELS.map((level, rank) => (
          <option key={level} value={rank}>
            {rank === 0 ? t('runs.log.levelAll') : t('runs.log.levelAtLeast', { level })}
          </option>
        ))}
      </select>
      {props.attempts.length > 1 && (
        <select className="native-select" aria-label={t('runs.log.attempt')} value={props.attempt ?? 0} onChange={(event) => props.onAttempt(Number(event.target.value) || undefined)}>
          <option value={0}>{t('runs.log.attemptAll')}</option>
          {props.attempts.map((n) => (
            <option key={n} value={n}>
              {t('runs.detail.attempt', { n })}
            </option>
          ))}
        </select>
      )}
      <Input
        type="search"
        allowClear
        className="w-190"
        aria-label={t('runs.log.search')}
        placeholder={t('runs.log.search')}
        value={props.typed}
        onChange={(event) => {
          props.onTyped(event.target.value)
          search.restart()
        }}
        onPressEnter={(event) => search.enter(event.shiftKey ? -1 : 1)}
      />
      {search.active && (
        <span className="row tight">
          <span className="muted small num" role="status">
            {search.label}
          </span>
          <Button size="small" icon={<UpOutlined />} aria-label={t('runs.log.previousMatch')} loading={search.busy} disabled={search.none} onClick={() => search.step(-1)} />
          <Button size="small" icon={<DownOutlined />} aria-label={t('runs.log.nextMatch')} loading={search.busy} disabled={search.none} onClick={() => search.step(1)} />
          <Checkbox checked={props.onlyMatches} onChange={(event) => props.onOnlyMatches(event.target.checked)}>
            {t('runs.log.onlyMatches')}
          </Checkbox>
        </span>
      )}
      <span className="grow" />
      <JumpBox lastLine={props.lastLine} onJump={props.onJump} />
      <Checkbox checked={props.wrap} onChange={(event) => props.onWrap(event.target.checked)}>
        {t('runs.log.wrap')}
      </Checkbox>
      <Checkbox checked={props.times} onChange={(event) => props.onTimes(event.target.checked)}>
        {t('runs.log.times')}
      </Checkbox>
      <Button icon={<DownloadOutlined />} disabled={props.lastLine === 0} onClick={props.onDownload}>
        {t('runs.log.download')}
      </Button>
    </div>
  )
}

/** Enter goes to the line; what is no number of a line goes nowhere. */
function JumpBox({ lastLine, onJump }: { lastLine: number; onJump: (n: number) => void }) {
  const { t } = useTranslation()
  const [typed, setTyped] = useState('')
  const n = Number(typed.replaceAll(/[\s,.]/g, ''))
  const good = Number.isSafeInteger(n) && n >= 1
  return (
    <Input
      className="w-110"
      inputMode="numeric"
      aria-label={t('runs.log.jumpLine')}
      placeholder={t('runs.log.jumpLine')}
      value={typed}
      status={typed !== '' && !good ? 'error' : undefined}
      disabled={lastLine === 0}
      onChange={(event) => setTyped(event.target.value)}
      onPressEnter={() => good && onJump(Math.min(n, lastLine))}
    />
  )
}
