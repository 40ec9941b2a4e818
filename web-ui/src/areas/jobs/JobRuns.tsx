// The runs of a job below its backfills.
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { RunBars } from '../runs/RunBars'
import { RunFilters } from '../runs/RunsPage'
import { RunTable } from '../runs/RunTable'
import { JobBackfills } from './change/JobBackfills'

export function JobRunsTab() {
  const { jobId } = useParams({ from: '/app/jobs/$jobId' })
  const search = useSearch({ from: '/app/jobs/$jobId/runs' })
  const navigate = useNavigate()
  const go = (next: typeof search) => void navigate({ to: '/jobs/$jobId/runs', params: { jobId }, search: next })
  return (
    <>
      <JobBackfills jobId={jobId} />
      <RunFilters search={search} onChange={go} jobId={jobId} />
      <RunBars search={search} onChange={go} jobId={jobId} />
      <RunTable search={search} onChange={go} jobId={jobId} />
    </>
  )
}
