// Finds objects of all kinds by name, id or label; its own chunk. The focus stays in the
// field. Arrows choose a hit, and Enter leads to its page.
import { SearchOutlined } from '@ant-design/icons'
import { useNavigate } from '@tanstack/react-router'
import { Input } from 'antd'
import { useEffect, useId, useState, type KeyboardEvent } from 'react'
import { useTranslation } from 'react-i18next'
import { searchQuery, type SearchHit } from '../api/search'
import { useQuery } from '../api/useQuery'
import { Dialog } from '../ui/Dialog'
import { useErrorText } from '../ui/hooks'

const DELAY_MS = 200
const MIN_LENGTH = 2

const FOLDERS: Record<string, string> = {
  Job: '/jobs/', Run: '/runs/', Executor: '/executors/', Calendar: '/calendars/', Script: '/settings/integrations/scripts/', Connection: '/settings/integrations/connections/', AlertRule: '/settings/notifications/rules/', AlertChannel: '/settings/notifications/channels/',
}

/** The page of a hit. Timers have none of their own: the list shows them by key. */
export function pageOf({ kind, id, name, hint }: SearchHit): { to: string; search?: Record<string, string> } | undefined {
  if (kind === 'Timer') {
    const slash = hint.indexOf('/')
    return { to: '/timers', search: { executor: hint.slice(0, slash), handler: hint.slice(slash + 1), keyPrefix: name } }
  }
  const folder = FOLDERS[kind]
  return folder === undefined ? undefined : { to: folder + id }
}

/** Hits by kind, in the order of the best hit of each kind. */
export function byKind(hits: SearchHit[]): { kind: string; hits: SearchHit[] }[] {
  return [...new Set(hits.map((hit) => hit.kind))].map((kind) => ({ kind, hits: hits.filter((hit) => hit.kind === kind) }))
}

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), DELAY_MS)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}

/** An end of line in the text is an Enter that was pressed before the hits of the text were there. */
export default function SearchDialog({ text: typed, onText, onClose }: { text: string; onText: (text: string) => void; onClose: () => void }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const errorText = useErrorText()
  const id = useId()
  const [at, setAt] = useState(0)
  const text = typed.replaceAll('\n', '')
  const q = useSettled(text.trim())
  const answer = useQuery({ ...searchQuery(q), enabled: q.length >= MIN_LENGTH })
  const groups = byKind(answer.data?.items ?? [])
  const hits = groups.flatMap((group) => group.hits)
  const chosen = Math.min(at, hits.length - 1)

  const go = (hit: SearchHit | undefined) => {
    const page = hit && pageOf(hit)
    if (!page) return
    onClose()
    void navigate(page)
  }
  const entered = typed.endsWith('\n') && q === text.trim() && answer.data !== undefined && !answer.isPlaceholderData
  useEffect(() => {
    if (!entered) return
    if (hits.length > 0) go(hits[chosen])
    else onText(text)
  })
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 }
    const step = steps[event.key]
    if (event.key === 'Enter' && !event.nativeEvent.isComposing) onText(`${text}\n`)
    else if (step !== undefined && hits.length > 0) {
      event.preventDefault()
      const next = (chosen + step + hits.length) % hits.length
      setAt(next)
      document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' })
    }
  }
  const kindText = (kind: string) => t(`search.kind.${kind as 'Job'}`, { defaultValue: kind })
  const status = () => {
    if (q.length < MIN_LENGTH) return t('search.help')
    if (answer.error) return errorText(answer.error)
    if (!answer.data) return t('search.busy')
    const more = answer.data.more.map(kindText).join(', ')
    return [t('search.found', { count: hits.length }), more && t('search.more', { kinds: more })].filter(Boolean).join(' ')
  }
  return (
    <Dialog title={t('search.title')} footer={null} onCancel={onClose}>
      <Input
        prefix={<SearchOutlined aria-hidden="true" />}
        role="combobox"
        aria-label={t('search.label')}
        aria-expanded={hits.length > 0}
        aria-controls={hits.length > 0 ? `${id}-list` : undefined}
        aria-autocomplete="list"
        aria-activedescendant={hits.length > 0 ? `${id}-${chosen}` : undefined}
        placeholder={t('search.label')}
        maxLength={128}
        value={text}
        onChange={(event) => {
          onText(event.target.value)
          setAt(0)
        }}
        onKeyDown={onKeyDown}
      />
      <p className="muted small" role="status">
        {status()}
      </p>
      {hits.length > 0 && (
        <div id={`${id}-list`} role="listbox" aria-label={t('search.hits')} className="search-hits">
          {groups.map(({ kind, hits: of }) => (
            <div key={kind} role="group" aria-label={kindText(kind)}>
              <div className="nav-title" aria-hidden="true">
                {kindText(kind)}
              </div>
              {of.map((hit) => {
                const index = hits.indexOf(hit)
                return (
                  <button type="button" key={hit.id} id={`${id}-${index}`} role="option" tabIndex={-1} aria-selected={index === chosen} onMouseMove={() => setAt(index)} onClick={() => go(hit)}>
                    <span className="clip">{hit.name}</span> <span className="muted small">{hit.hint}</span>
                  </button>
                )
              })}
            </div>
          ))}
        </div>
      )}
    </Dialog>
  )
}
