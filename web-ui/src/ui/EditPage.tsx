// What pages share that write something which somebody else may change
// meanwhile: the draft stands on the version that was read once.
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { ActionButton } from './ActionButton'
import { Page } from './Page'
import { ErrorState, PageSkeleton } from './States'

interface Props<T> {
  /** See readOnce. */
  stored: UseQueryResult<T>
  title: (data: T) => string
  crumbs: (data: T) => ReactNode
  sub?: (data: T) => string | null | undefined
  children: (data: T) => ReactNode
}

export function EditPage<T>({ stored, title, crumbs, sub, children }: Props<T>) {
  if (stored.error && !stored.data) return <ErrorState error={stored.error} onRetry={() => void stored.refetch()} />
  if (!stored.data || stored.isFetching) return <PageSkeleton />
  return (
    <Page title={title(stored.data)} crumbs={crumbs(stored.data)} sub={sub?.(stored.data)}>
      {children(stored.data)}
    </Page>
  )
}

/** The way out, and what saving means. */
export function FormFoot({ isNew, busy, cancel, children }: { isNew: boolean; busy: boolean; cancel: ReactNode; children?: ReactNode }) {
  const { t } = useTranslation()
  return (
    <div className="form-foot">
      <ActionButton type="primary" htmlType="submit" loading={busy}>
        {t(isNew ? 'action.create' : 'action.save')}
      </ActionButton>
      {cancel}
      {children}
    </div>
  )
}
