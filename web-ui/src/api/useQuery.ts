// The library's useQuery, in which an error stays until an answer comes. The
// library forgets the error of a query without data as soon as it is asked
// again: every few seconds the page turned back into skeletons, and its
// buttons went away under the pointer.
import { hashKey, useQueryClient, useQuery as useLibraryQuery, type DefaultError, type Query, type QueryKey, type UseQueryOptions, type UseQueryResult } from '@tanstack/react-query'

/** The last failure of queries that have not been answered since. */
const failures = new WeakMap<object, unknown>()

type AnyQuery = Query<unknown, unknown, unknown>

/** What the query cache reports to. */
export const failureLog = {
  onError: (error: unknown, query: AnyQuery) => void failures.set(query, error),
  onSuccess: (_: unknown, query: AnyQuery) => void failures.delete(query),
}

export function useQuery<TQueryFnData = unknown, TError = DefaultError, TData = TQueryFnData, TQueryKey extends QueryKey = QueryKey>(
  options: UseQueryOptions<TQueryFnData, TError, TData, TQueryKey>,
): UseQueryResult<TData, TError> {
  const cache = useQueryClient().getQueryCache()
  const result = useLibraryQuery(options)
  if (result.error !== null || (result.data !== undefined && !result.isPlaceholderData)) return result
  const query = cache.get(hashKey(options.queryKey))
  if (!query || !failures.has(query)) return result
  // Rows of the query before are no answer to one that failed.
  return { ...result, data: undefined, error: failures.get(query), status: 'error', isError: true, isPending: false, isSuccess: false, isPlaceholderData: false } as UseQueryResult<TData, TError>
}
