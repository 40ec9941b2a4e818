// The shards of a run, and the hooks before and after them.
import { RedoOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate } from '@tanstack/react-router'
import { Button } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../api/endpoints'
import { isFinal, queries, refreshJobs } from '../../api/queries'
import type { Run, RunDetail, RunState } from '../../api/types'
import { whyLine } from '../../lib/why'
import { ActionButton } from '../../ui/ActionButton'
import { useCan, useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { RunStateChip } from '../../ui/StateChip'
import { DurationText } from '../../ui/TimeText'

const FIRST = 100
const ALL = 1002

export function RunShards({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const [limit, setLimit] = useState(FIRST)
  const parts = useQuery(queries.runParts(run.id, run.state, limit))
  const ended = Object.entries(parts.data?.shards ?? {})
  const failed = ended.some(([state]) => state !== 'succeeded')
  const columns: Column<Run>[] = [
    { key: 'part', title: t('runs.shards.part'), kind: 'title', render: (part) => <PartLink part={part} /> },
    { key: 'state', title: t('field.state'), render: (part) => <RunStateChip state={part.state} fireAt={part.fireAt} /> },
    { key: 'instance', title: t('runs.list.instance'), render: (part) => (part.instance ? <Instance of={part.instance} /> : '—') },
    { key: 'attempt', title: t('runs.list.attempt'), align: 'right', render: (part) => <span className="num">{part.attempt === 0 ? '—' : `${part.attempt}/${part.maxAttempts}`}</span> },
    { key: 'duration', title: t('runs.list.duration'), align: 'right', render: (part) => <DurationText ms={part.durationMs} /> },
    { key: 'why', title: t('runs.detail.why'), render: (part) => <Why text={whyLine(part, t)} /> },
  ]
  return (
    <section className="card" aria-label={t('runs.shards.title')}>
      <div className="row between">
        <h2>{t('runs.shards.title')}</h2>
        {failed && isFinal(run.state) && <RetryFailed run={run} />}
      </div>
      <p className="row" role="status">
        {ended.map(([state, n]) => (
          <span key={state}>
            <RunStateChip state={state as RunState} /> <span className="num">{n}</span>
          </span>
        ))}
        {Boolean(parts.data?.living) && <span className="muted">{t('runs.shards.living', { count: parts.data?.living })}</span>}
      </p>
      <ResourceTable
        label={t('runs.shards.title')}
        columns={columns}
        rows={parts.data?.items}
        rowKey={(part) => part.id}
        error={parts.error}
        onRetry={() => void parts.refetch()}
        empty={<p className="muted">{t('runs.shards.none')}</p>}
      />
      {parts.data?.more && (
        <Button type="link" onClick={() => setLimit(ALL)}>
          {t('runs.shards.all')}
        </Button>
      )}
    </section>
  )
}

const Instance = ({ of }: { of: NonNullable<Run['instance']> }) => (
  <Link to="/runs" search={{ instanceId: of.id }} className="mono">
    {of.name}
  </Link>
)

const Why = ({ text }: { text: string | undefined }) => (text ? <span className="any-wrap">{text}</span> : null)

function PartLink({ part }: { part: Run }) {
  const { t } = useTranslation()
  return (
    <Link to="/runs/$runId" params={{ runId: part.id }}>
      {part.shard ? t('runs.shards.nth', { index: part.shard.index, total: part.shard.total }) : t(part.part === 'before' ? 'runs.shards.before' : 'runs.shards.after')}
    </Link>
  )
}

function RetryFailed({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const showError = useShowError()
  const allowed = useCan('operator')
  const [busy, setBusy] = useState(false)
  if (!allowed) return null
  const retry = async () => {
    setBusy(true)
    try {
      const next = await api.retryRun(run.id, { onlyFailed: true })
      message.success(t('runs.detail.retried', { id: next.id }))
      refreshJobs()
      await navigate({ to: '/runs/$runId', params: { runId: next.id } })
    } catch (err) {
      showError(err)
    } finally {
      setBusy(false)
    }
  }
  return (
    <ActionButton icon={<RedoOutlined />} loading={busy} onClick={() => void retry()}>
      {t('runs.shards.retryFailed')}
    </ActionButton>
  )
}
