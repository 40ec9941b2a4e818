// The runs of a job below its backfills. On a phone the runs come first.
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useNarrow } from '../../ui/hooks'
import { RunFilters } from '../runs/RunFilters'
import { RunList } from '../runs/RunList'
import { JobBackfills } from './change/JobBackfills'

export function JobRunsTab() {
  const { jobId } = useParams({ from: '/app/jobs/$jobId' })
  const { why: _, ...search } = useSearch({ from: '/app/jobs/$jobId/runs' })
  const navigate = useNavigate()
  const go = (next: typeof search) => void navigate({ to: '/jobs/$jobId/runs', params: { jobId }, search: next })
  const narrow = useNarrow()
  const backfills = <JobBackfills jobId={jobId} />
  return (
    <>
      {!narrow && backfills}
      <RunFilters search={search} onChange={go} jobId={jobId} />
      <RunList search={search} onChange={go} jobId={jobId} />
      {narrow && backfills}
    </>
  )
}
