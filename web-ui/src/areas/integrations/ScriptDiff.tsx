// What changed between two versions, line by line; long stretches without a
// change are folded.
import './integrations.css'
import { useQuery } from '../../api/useQuery'
import { useTranslation } from 'react-i18next'
import { scriptQueries } from './scripts'
import type { Id } from '../../api/types'
import { foldLines } from './scriptDiff'
import { ErrorState } from '../../ui/States'

const SIGN = { same: ' ', added: '+', removed: '−' } as const

export function ScriptDiff({ id, from, to }: { id: Id; from: number; to: number }) {
  const { t } = useTranslation()
  const diff = useQuery(scriptQueries.scriptDiff(id, from, to))
  if (diff.error) return <ErrorState error={diff.error} onRetry={() => void diff.refetch()} />
  if (!diff.data) return <span className="skeleton h-60 full" />
  const { lines, added, removed } = diff.data
  if (added + removed === 0) return <p className="muted">{t('scripts.same')}</p>
  return (
    <pre className="code-block script-diff" tabIndex={0} role="region" aria-label={t('scripts.changesFrom', { n: from })}>
      {foldLines(lines).map((one) =>
        one.op === 'folded' ? (
          <span key={one.key} className="muted">
            {t('scripts.skipped', { count: one.count })}
            {'\n'}
          </span>
        ) : (
          <span key={one.key} className={one.op}>
            {SIGN[one.op]} {one.text}
            {'\n'}
          </span>
        ),
      )}
    </pre>
  )
}
