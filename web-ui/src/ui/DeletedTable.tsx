// What was deleted and can be restored, the last deleted first.
import type { UseQueryResult } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Id } from '../api/types'
import { basePath } from '../lib/base'
import { ActionButton } from './ActionButton'
import { ByWhom } from './ByWhom'
import { useCan, useShowError } from './hooks'
import { notification } from './notices'
import { Pager, ResourceTable, type Column } from './ResourceTable'
import { Blank } from './States'
import { RelativeTime } from './TimeText'

interface Deleted {
  id: Id
  name: string
  deletedAt: string
  deletedBy?: string
}

interface Props<T> {
  label: string
  help: string
  emptyTitle: string
  list: UseQueryResult<{ items: T[]; nextCursor: string | null }>
  /** Those between the name and the deletion. */
  columns?: Column<T>[]
  cursor: string | undefined
  onGo: (cursor: string | undefined) => void
  restore: (id: Id) => Promise<unknown>
  /** Asks for the lists again, whether it was restored or refused. */
  refresh: () => void
  /** The page of what was restored. */
  path: (id: Id) => string
  open: (id: Id) => void
}

export function DeletedTable<T extends Deleted>({ label, help, emptyTitle, list, columns = [], cursor, onGo, ...restoring }: Props<T>) {
  const { t } = useTranslation()
  const canEdit = useCan('editor')
  const all: Column<T>[] = [
    { key: 'name', title: t('field.name'), kind: 'title', render: (one) => <strong className="any-wrap">{one.name}</strong> },
    ...columns,
    { key: 'deleted', title: t('deleted.title'), render: (one) => (one.deletedBy ? <ByWhom who={one.deletedBy} at={one.deletedAt} /> : <RelativeTime at={one.deletedAt} />) },
  ]
  if (canEdit) all.push({ key: 'actions', title: t('field.actions'), kind: 'actions', render: (one) => <RestoreButton one={one} {...restoring} /> })
  return (
    <>
      <p className="muted spaced">{help}</p>
      <div className="card flush">
        <ResourceTable
          label={label}
          columns={all}
          rows={list.data?.items}
          rowKey={(one) => one.id}
          error={list.error}
          onRetry={() => void list.refetch()}
          updatedAt={list.dataUpdatedAt}
          empty={<Blank title={emptyTitle} />}
          pager={<Pager cursor={cursor} nextCursor={list.data?.nextCursor} onGo={onGo} />}
        />
      </div>
    </>
  )
}

function RestoreButton({ one, restore, refresh, path, open }: { one: Deleted } & Pick<Props<Deleted>, 'restore' | 'refresh' | 'path' | 'open'>) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [busy, setBusy] = useState(false)
  const { id, name } = one
  const click = async () => {
    setBusy(true)
    try {
      await restore(id)
      notification.success({
        title: t('deleted.restored', { name }),
        actions: (
          <a
            href={basePath + path(id)}
            onClick={(event) => {
              event.preventDefault()
              open(id)
            }}
          >
            {t('deleted.open')}
          </a>
        ),
      })
    } catch (err) {
      showError(err)
    }
    setBusy(false)
    refresh()
  }
  return (
    <ActionButton size="small" loading={busy} onClick={() => void click()} aria-label={`${t('deleted.restore')}: ${name}`}>
      {t('deleted.restore')}
    </ActionButton>
  )
}
