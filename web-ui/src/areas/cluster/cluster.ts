// What only some pages ask of the cluster: not part of what every page loads.
import { http, take } from '../../api/client'
import { list } from '../../api/queries'

export const clusterApi = {
  cluster: (signal?: AbortSignal) => take(http.GET('/api/v1/cluster', { signal })),
  refusals: (signal?: AbortSignal) => take(http.GET('/api/v1/cluster/refusals', { signal })),
  confirmClock: () => take(http.POST('/api/v1/cluster/confirm-clock')),
}

export const clusterQueries = {
  refusals: () => list(['cluster', 'refusals'], (signal) => clusterApi.refusals(signal)),
  cluster: () => list(['cluster'], (signal) => clusterApi.cluster(signal), 2_000),
}
