import type { Job, Problem, ProblemItem, QuotaExcess } from './types'

/** What an error answer may hold; a proxy in between may say less. */
export type PartialProblem = Partial<Omit<Problem, 'code'>> & { status: number; code: string }

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
  /** Only with revision_mismatch: the job as it is now. */
  readonly current: Job | undefined

  /** Only with quota_exceeded: which one, and how far it went. */
  readonly quota: QuotaExcess | undefined

  constructor(problem: PartialProblem, requestId = '') {
    super(problem.detail ?? problem.title ?? problem.code)
    this.name = 'ApiError'
    this.status = problem.status
    this.code = problem.code
    this.detail = problem.detail ?? problem.title ?? ''
    this.requestId = problem.instance ?? requestId
    this.items = problem.errors ?? []
    this.quota = problem.quota
    this.current = problem.current as Job | undefined
  }

  /** The item that speaks of a field, by its location. */
  itemAt(location: string): ProblemItem | undefined {
    return this.items.find((item) => item.location === location || item.location === `body.${location}`)
  }
}

/** Makes an ApiError of an answer and its body, which need not be problem+json. */
export function problemOf(res: Response, body: unknown): ApiError {
  const requestId = res.headers.get('X-Request-Id') ?? ''
  if (body && typeof body === 'object') {
    const problem = body as Partial<Problem>
    return new ApiError({ ...problem, status: problem.status ?? res.status, code: problem.code ?? codeOf(res.status) }, requestId)
  }
  return new ApiError({ status: res.status, code: codeOf(res.status), detail: typeof body === 'string' ? body.slice(0, 300) : '' }, requestId)
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
