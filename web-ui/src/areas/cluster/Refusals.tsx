// Who tried to join and was turned away: for people who look for an executor
// that does not come, and for floods.
import { useQuery } from '../../api/useQuery'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { clusterQueries } from './cluster'
import type { Refusal } from '../../api/types'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { said } from '../../lib/said'
import { RelativeTime } from '../../ui/TimeText'

const KNOWN = [
  'bad_token',
  'token_expired',
  'wrong_executor',
  'certificate_required',
  'bad_certificate',
  'denied',
  'version_unsupported',
  'flapping',
  'limit_reached',
  'not_registered',
  'malformed',
  'flood',
] as const

export function Refusals() {
  const { t } = useTranslation()
  const refusals = useQuery(clusterQueries.refusals())
  const reason = (one: Refusal) => KNOWN.find((code) => code === one.code)
  const columns: Column<Refusal>[] = [
    {
      key: 'who',
      title: t('refusals.who'),
      kind: 'title',
      render: (one) => (
        <div className="any-wrap">
          {one.executor ? (
            <Link to="/executors" search={{ q: one.executor }}>
              <strong>{one.executor}</strong>
            </Link>
          ) : (
            <strong>{t('refusals.unnamed')}</strong>
          )}
          <div className="muted small mono">{[one.instance, one.remote || t('refusals.several'), one.node && t('refusals.at', { node: one.node })].filter(Boolean).join(' · ')}</div>
        </div>
      ),
    },
    {
      key: 'why',
      title: t('refusals.why'),
      render: (one) => {
        const code = reason(one)
        return (
          <div className="any-wrap">
            {code ? t(`refusals.because.${code}`) : one.code}
            <div className="muted small">{said(one.message, t)}</div>
          </div>
        )
      },
    },
    {
      key: 'do',
      title: t('refusals.do'),
      render: (one) => {
        const code = reason(one)
        return code ? t(`refusals.remedy.${code}`) : null
      },
    },
    { key: 'times', title: t('refusals.times'), align: 'right', render: (one) => <span className="num">{one.times}</span> },
    { key: 'first', title: t('refusals.first'), render: (one) => <RelativeTime at={one.firstAt} /> },
    { key: 'last', title: t('refusals.last'), render: (one) => <RelativeTime at={one.lastAt} /> },
  ]
  const unheard = refusals.data?.unheard ?? 0
  return (
    <section className="card flush" aria-label={t('refusals.title')}>
      <div className="card-head">
        <div>
          <h2>{t('refusals.title')}</h2>
          <p className="muted small">{t('refusals.help')}</p>
          {unheard > 0 && <p className="st-timeout">{t('refusals.unheard', { count: unheard })}</p>}
        </div>
      </div>
      <ResourceTable
        label={t('refusals.title')}
        columns={columns}
        rows={refusals.data?.items}
        rowKey={(one) => [one.code, one.remote, one.executor, one.instance].join(' ')}
        error={refusals.error}
        onRetry={() => void refusals.refetch()}
        updatedAt={refusals.dataUpdatedAt}
        empty={<p className="muted empty-line">{t('refusals.none')}</p>}
      />
    </section>
  )
}
