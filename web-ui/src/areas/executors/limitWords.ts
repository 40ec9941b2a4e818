// The server lists the limits that are set; people also see what has none.
import type { Id, Limit } from '../../api/types'

interface Named {
  id: Id
  name: string
}

export type LimitRow = Limit

export function limitOf(limits: Limit[], kind: Limit['kind'], { id, name }: Named): LimitRow {
  return limits.find((one) => one.kind === kind && one.subject.id === id) ?? { kind, subject: { id, name }, maxRunning: 0, running: 0, waiting: 0 }
}

/** The tenant first, then its executors by name, with a limit or without. */
export function limitRows(limits: Limit[], tenant: Named, executors: Named[]): LimitRow[] {
  const listed = new Set(executors.map((one) => one.id))
  // Those with a limit are shown also when the list of executors was cut.
  const beyond = limits.filter((one) => one.kind === 'executor' && !listed.has(one.subject.id))
  const named = [...executors.map((one) => limitOf(limits, 'executor', one)), ...beyond].toSorted((a, b) => a.subject.name.localeCompare(b.subject.name))
  return [limitOf(limits, 'tenant', tenant), ...named]
}
