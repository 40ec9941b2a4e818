// The list of things that are written by hand and kept in versions: a name
// with its description first, who changed it and when last.
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { ByWhom } from './ByWhom'
import { Pager, ResourceTable, type Column } from './ResourceTable'
import { Blank } from './States'

interface Named {
  id: string
  name: string
  description?: string
  updatedBy: string
  updatedAt: string
}

interface Props<T> {
  label: string
  list: UseQueryResult<{ items: T[]; nextCursor: string | null }>
  link: (one: T, name: ReactNode) => ReactNode
  /** Those between the name and the last change. */
  columns: Column<T>[]
  emptyTitle: string
  emptyHelp: string
  /** How to make the first one, for who may. */
  create: ReactNode
  cursor: string | undefined
  onGo: (cursor: string | undefined) => void
}

export function NamedTable<T extends Named>({ label, list, link, columns, emptyTitle, emptyHelp, create, cursor, onGo }: Props<T>) {
  const { t } = useTranslation()
  const name: Column<T> = {
    key: 'name',
    title: t('field.name'),
    kind: 'title',
    render: (one) => (
      <div>
        {link(one, <strong>{one.name}</strong>)}
        {one.description && <div className="muted small">{one.description}</div>}
      </div>
    ),
  }
  const updated: Column<T> = { key: 'updated', title: t('field.updated'), render: (one) => <ByWhom who={one.updatedBy} at={one.updatedAt} /> }
  return (
    <div className="card flush">
      <ResourceTable
        label={label}
        columns={[name, ...columns, updated]}
        rows={list.data?.items}
        rowKey={(one) => one.id}
        error={list.error}
        onRetry={() => void list.refetch()}
        updatedAt={list.dataUpdatedAt}
        empty={
          <Blank title={emptyTitle} help={emptyHelp}>
            {create}
          </Blank>
        }
        pager={<Pager cursor={cursor} nextCursor={list.data?.nextCursor} onGo={onGo} />}
      />
    </div>
  )
}
