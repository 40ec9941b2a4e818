// Field by field differences between two JSON documents: for the edit
// conflict and for the revision history.
import { isRecord, writeJson } from './json'

export type Flat = Record<string, unknown>

export interface FieldDiff {
  path: string
  before: unknown
  after: unknown
}

// Shown and merged as one value: the input is the user's own, and label keys
// may contain dots.
const ATOMS: readonly string[] = ['input', 'labels', 'script']

/** Leaves by dotted path; arrays count as one leaf too. */
export function flatten(value: unknown, prefix = '', atoms: readonly string[] = ATOMS): Flat {
  const out: Flat = {}
  if (!isRecord(value) || atoms.includes(prefix)) {
    if (prefix) out[prefix] = value
    return out
  }
  for (const [key, child] of Object.entries(value)) {
    Object.assign(out, flatten(child, prefix ? `${prefix}.${key}` : key, atoms))
  }
  return out
}

// Absent, null, "" and empty containers all mean "not set" in a job.
export function sameField(a: unknown, b: unknown): boolean {
  const norm = (v: unknown) => {
    const textual = writeJson(v, undefined, true)
    return textual === 'null' || textual === '""' || textual === '[]' || textual === '{}' ? '' : textual
  }
  return norm(a) === norm(b)
}

export function diffFields(before: unknown, after: unknown): FieldDiff[] {
  const a = flatten(before)
  const b = flatten(after)
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .sort()
    .filter((path) => !sameField(a[path], b[path]))
    .map((path) => ({ path, before: a[path], after: b[path] }))
}

export type Choice = 'mine' | 'theirs'

export interface Conflict {
  path: string
  base: unknown
  mine: unknown
  theirs: unknown
  /** undefined = both changed it, so a person has to decide. */
  suggested: Choice | undefined
}

/** What differs between my draft and the stored document, seen from their common base. */
export function conflicts(base: unknown, mine: unknown, theirs: unknown): Conflict[] {
  const b = flatten(base)
  const m = flatten(mine)
  const t = flatten(theirs)
  return [...new Set([...Object.keys(m), ...Object.keys(t)])]
    .sort()
    .filter((path) => !sameField(m[path], t[path]))
    .map((path) => ({
      path,
      base: b[path],
      mine: m[path],
      theirs: t[path],
      suggested: sameField(b[path], m[path]) ? 'theirs' : sameField(b[path], t[path]) ? 'mine' : undefined,
    }))
}

/** My draft with the chosen fields taken from the stored document. */
export function merge<T>(mine: T, list: Conflict[], choices: Record<string, Choice>): T {
  const taken = list.filter((one) => choices[one.path] === 'theirs')
  return taken.reduce((out, one) => withPath(out, one.path.split('.'), one.theirs), mine as Flat) as T
}

/** A copy with one leaf set, or taken out by undefined. */
function withPath(target: unknown, [head = '', ...rest]: string[], value: unknown): Flat {
  const { [head]: old, ...others } = isRecord(target) ? target : ({} as Flat)
  const next = rest.length > 0 ? withPath(old, rest, value) : value
  return next === undefined ? others : { ...others, [head]: next }
}

export function showValue(value: unknown): string {
  if (value === undefined || value === null || value === '') return '—'
  return typeof value === 'string' ? value : writeJson(value)
}
