import type { Job, Problem, ProblemItem } from './types'

/**
 * ApiError is the only error that the API layer throws. `code` is stable and
 * translated by the pages (errors.<code>); `detail` is the server's own text.
 * Status 0 with code "network" means that no answer came at all.
 */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly requestId: string
  readonly items: ProblemItem[]
  readonly current: Job | undefined

  constructor(problem: Problem, requestId = '') {
    super(problem.detail ?? problem.title ?? problem.code)
    this.name = 'ApiError'
    this.status = problem.status
    this.code = problem.code
    this.detail = problem.detail ?? problem.title ?? ''
    this.requestId = problem.instance ?? requestId
    this.items = problem.errors ?? []
    this.current = problem.current
  }

  /** The item that speaks of a field, by the end of its location. */
  itemAt(location: string): ProblemItem | undefined {
    return this.items.find((item) => item.location === location || item.location === `body.${location}`)
  }
}

/** Reads an error answer; tolerates bodies which are not problem+json. */
export async function problemOf(res: Response): Promise<ApiError> {
  const requestId = res.headers.get('X-Request-Id') ?? ''
  const text = await res.text().catch(() => '')
  try {
    const body = JSON.parse(text) as Partial<Problem>
    if (body && typeof body === 'object') {
      return new ApiError(
        { ...body, status: body.status ?? res.status, code: body.code ?? codeOf(res.status) },
        requestId,
      )
    }
  } catch {
    // Not JSON: a proxy in between answered.
  }
  return new ApiError({ status: res.status, code: codeOf(res.status), detail: text.slice(0, 300) }, requestId)
}

function codeOf(status: number): string {
  switch (status) {
    case 401:
      return 'unauthenticated'
    case 403:
      return 'permission_denied'
    case 404:
      return 'not_found'
    case 412:
      return 'revision_mismatch'
    case 429:
      return 'rate_limited'
    case 502:
    case 503:
    case 504:
      return 'unavailable'
    default:
      return status >= 500 ? 'internal' : 'validation_failed'
  }
}

export function isApiError(err: unknown, code?: string): err is ApiError {
  return err instanceof ApiError && (code === undefined || err.code === code)
}
