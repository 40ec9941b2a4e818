// What a reader can ask of a log: follow, level, attempt, text, line.
import './log.css'
import { DownloadOutlined, DownOutlined, UpOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Check } from '../../../ui/Check'
import { TextField } from '../../../ui/TextField'
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
      <Check checked={props.following} onChange={props.onFollow}>
        {t('runs.log.follow')}
      </Check>
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
      <TextField
        type="search"
        clears
        className="w-190"
        label={t('runs.log.search')}
        value={props.typed}
        onChange={(text) => {
          props.onTyped(text)
          search.restart()
        }}
        onEnter={(shift) => search.enter(shift ? -1 : 1)}
      />
      {search.active && (
        <span className="row tight">
          <span className="muted small num" role="status">
            {search.label}
          </span>
          <Button size="small" icon={<UpOutlined />} aria-label={t('runs.log.previousMatch')} loading={search.busy} disabled={search.none} onClick={() => search.step(-1)} />
          <Button size="small" icon={<DownOutlined />} aria-label={t('runs.log.nextMatch')} loading={search.busy} disabled={search.none} onClick={() => search.step(1)} />
          <Check checked={props.onlyMatches} onChange={props.onOnlyMatches}>
            {t('runs.log.onlyMatches')}
          </Check>
        </span>
      )}
      <span className="grow" />
      <JumpBox lastLine={props.lastLine} onJump={props.onJump} />
      <Check checked={props.wrap} onChange={props.onWrap}>
        {t('runs.log.wrap')}
      </Check>
      <Check checked={props.times} onChange={props.onTimes}>
        {t('runs.log.times')}
      </Check>
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
    <TextField
      className="w-110"
      inputMode="numeric"
      label={t('runs.log.jumpLine')}
      value={typed}
      aria-invalid={typed !== '' && !good}
      disabled={lastLine === 0}
      onChange={setTyped}
      onEnter={() => good && onJump(Math.min(n, lastLine))}
    />
  )
}
