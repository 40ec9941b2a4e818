// The newest run of the same job that succeeded before a run was planned.
import { queryOptions } from '@tanstack/react-query'
import { api } from '../../api/endpoints'
import { queryClient, queries } from '../../api/queries'
import type { RunDetail } from '../../api/types'

/** null: there is none. A run that ended long ago keeps its answer. */
export const lastGoodQuery = (run: RunDetail) =>
  queryOptions({
    queryKey: ['run', run.id, 'last-good'],
    queryFn: async ({ signal }): Promise<RunDetail | null> => {
      const { items } = await api.runs({ jobId: run.jobId, state: 'succeeded', to: run.claimedAt ?? run.fireAt, limit: 2 }, signal) // this run may be among them
      const id = items.find((one) => one.id !== run.id)?.id
      return id ? queryClient.fetchQuery(queries.run(id)) : null
    },
    staleTime: Infinity,
    // Parts have no list of their own, and a part of another run tells little.
    enabled: !run.parentId,
  })
