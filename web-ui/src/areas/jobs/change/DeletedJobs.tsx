// The list of jobs while its filter is "deleted".
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { http, present, take } from '../../../api/client'
import { at } from '../../../api/endpoints'
import { list, refreshJobs, SLOW_MS } from '../../../api/queries'
import { useQuery } from '../../../api/useQuery'
import { DeletedTable } from '../../../ui/DeletedTable'

interface Props {
  cursor: string | undefined
  onGo: (cursor: string | undefined) => void
}

const deletedQuery = (cursor: string | undefined) =>
  list(['jobs', 'deleted', cursor], (signal) => take(http.GET('/api/v1/deleted-jobs', { params: { query: present({ cursor }) }, signal })), SLOW_MS)

export default function DeletedJobs(page: Props) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  return (
    <DeletedTable
      {...page}
      label={t('deleted.jobs')}
      help={t('deleted.jobsHelp')}
      emptyTitle={t('deleted.noJob')}
      list={useQuery(deletedQuery(page.cursor))}
      columns={[{ key: 'executor', title: t('jobs.list.executor'), render: (one) => one.executor }]}
      restore={(id) => take(http.POST('/api/v1/jobs/{id}/restore', { params: at(id) }))}
      refresh={refreshJobs}
      path={(id) => `/jobs/${id}`}
      open={(jobId) => void navigate({ to: '/jobs/$jobId', params: { jobId } })}
    />
  )
}
