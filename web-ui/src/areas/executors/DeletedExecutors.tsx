// The list of executors while its view is "deleted".
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { http, present, take } from '../../api/client'
import { at } from '../../api/endpoints'
import { list, SLOW_MS } from '../../api/queries'
import { useQuery } from '../../api/useQuery'
import { DeletedTable } from '../../ui/DeletedTable'
import { refreshExecutors } from './executors'

interface Props {
  cursor: string | undefined
  onGo: (cursor: string | undefined) => void
}

const deletedQuery = (cursor: string | undefined) =>
  list(['executors', 'deleted', cursor], (signal) => take(http.GET('/api/v1/deleted-executors', { params: { query: present({ cursor }) }, signal })), SLOW_MS)

export default function DeletedExecutors(page: Props) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  return (
    <DeletedTable
      {...page}
      label={t('deleted.executors')}
      help={t('deleted.executorsHelp')}
      emptyTitle={t('deleted.noExecutor')}
      list={useQuery(deletedQuery(page.cursor))}
      restore={(id) => take(http.POST('/api/v1/executors/{id}/restore', { params: at(id) }))}
      refresh={refreshExecutors}
      path={(id) => `/executors/${id}`}
      open={(executorId) => void navigate({ to: '/executors/$executorId', params: { executorId } })}
    />
  )
}
