// The entries of the audit log about one object, for administrators. They are read when the card
// is opened.
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { changesOf } from '../api/changes'
import type { AuditEntry } from '../api/types'
import { useQuery } from '../api/useQuery'
import { diffFields } from '../lib/diff'
import { parseJson, writeJson } from '../lib/json'
import { useCan } from './hooks'
import { Pager, ResourceTable, type Column } from './ResourceTable'
import { Blank } from './States'
import { AbsoluteTime } from './TimeText'

interface Props {
  /** As in the audit log, such as `alert-rule`. */
  kind: string
  /** Its id. */
  object: string
}

export function Changes(props: Props) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  if (!useCan('admin')) return null
  return (
    <details className="card flush" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="inset">{t('changes.title')}</summary>
      {open && <Lines {...props} />}
    </details>
  )
}

function Lines({ kind, object }: Props) {
  const { t } = useTranslation()
  const [cursor, setCursor] = useState<string>()
  const entries = useQuery(changesOf(kind, object, cursor))
  const columns: Column<AuditEntry>[] = [
    { key: 'what', title: t('changes.what'), kind: 'title', render: (one) => <What entry={one} /> },
    { key: 'who', title: t('changes.who'), render: (one) => one.actor || <span className="muted">—</span> },
    { key: 'at', title: t('changes.at'), render: (one) => <AbsoluteTime at={one.at} /> },
  ]
  return (
    <ResourceTable
      label={t('changes.title')}
      columns={columns}
      rows={entries.data?.items}
      rowKey={(one) => one.id}
      error={entries.error}
      onRetry={() => void entries.refetch()}
      updatedAt={entries.dataUpdatedAt}
      empty={<Blank title={t('changes.none')} />}
      pager={<Pager cursor={cursor} nextCursor={entries.data?.nextCursor} onGo={setCursor} />}
    />
  )
}

/** The operation, and the two sides of what it changed. */
function What({ entry }: { entry: AuditEntry }) {
  const { t } = useTranslation()
  return (
    <>
      <strong className="mono">{entry.operation}</strong>
      {entry.outcome === 'refused' && <span className="st-failed"> {t('changes.refused', { code: entry.code })}</span>}
      {entry.before && entry.after && <Sides before={entry.before} after={entry.after} />}
    </>
  )
}

const SHOWN = 8

function Sides({ before, after }: { before: string; after: string }) {
  const { t } = useTranslation()
  const diff = sidesOf(before, after)
  return (
    <ul className="changes">
      {diff.slice(0, SHOWN).map((one) => (
        <li key={one.path} className="mono small">
          {one.path}: {said(one.before)} → {said(one.after)}
        </li>
      ))}
      {diff.length > SHOWN && <li className="muted">{t('calendars.moreChanges', { count: diff.length - SHOWN })}</li>}
    </ul>
  )
}

/** A text beyond its bound is cut, so it is no JSON any more: its sides are not compared. */
export function sidesOf(before: string, after: string) {
  try {
    return diffFields(parseJson(before), parseJson(after))
  } catch {
    return []
  }
}

const MOST = 120

function said(value: unknown): string {
  const text = value === undefined ? '—' : writeJson(value)
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text
}
