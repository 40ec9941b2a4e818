import type { UseQueryResult } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Ref } from '../api/types'
import { ErrorState } from './States'

/** The jobs that use something. */
export function JobLinks({ title, none, jobs }: { title: string; none: string; jobs: UseQueryResult<{ items: Ref[] }> }) {
  const { data, error } = jobs
  return (
    <section className="card">
      <h2>{title}</h2>
      {error && !data ? <ErrorState error={error} onRetry={() => void jobs.refetch()} /> : !data && <span className="skeleton" />}
      {data?.items.length === 0 && <p className="muted">{none}</p>}
      <ul className="plain-list">
        {data?.items.map((job) => (
          <li key={job.id}>
            <Link to="/jobs/$jobId" params={{ jobId: job.id }}>
              {job.name}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
