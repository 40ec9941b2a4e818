// What the cluster page computes of the rows that the API gives.
import type { Cluster, ClusterNode, ClusterPartition } from '../../api/types'

export interface Holder {
  /** undefined: nobody holds these now. */
  node: ClusterNode | undefined
  partitions: ClusterPartition[]
}

/** Partitions by the node that holds them now, in the order of the nodes; those without a holder last. */
export function holdersOf(cluster: Cluster): Holder[] {
  const held = (boot: string) => cluster.partitions.filter((one) => one.state === 'held' && one.bootId === boot)
  const known = new Set(cluster.nodes.map((one) => one.bootId))
  const orphans = cluster.partitions.filter((one) => one.state !== 'held' || !known.has(one.bootId))
  const holders: Holder[] = cluster.nodes.map((node) => ({ node, partitions: held(node.bootId) }))
  return orphans.length > 0 ? [...holders, { node: undefined, partitions: orphans }] : holders
}

/** "7" or "5–9": the terms of some partitions. */
export function termsOf(partitions: ClusterPartition[]): string {
  const terms = partitions.map((one) => Number(one.term))
  if (terms.length === 0) return ''
  const [low, high] = [Math.min(...terms), Math.max(...terms)]
  return low === high ? String(low) : `${low}–${high}`
}

/** What a node's rules of time zones call themselves; beside those of other nodes also what they are. */
export function zonesText({ version, source, digest }: ClusterNode['zoneRules'], beside: boolean): string {
  const name = version || source
  return beside ? `${name} · ${digest}` : name
}

export interface ClusterSummary {
  held: number
  orphans: number
  worstLagMs: number
  worstDueMs: number
  worstSkewMs: number
}

export function summaryOf({ partitions, nodes }: Cluster): ClusterSummary {
  const held = partitions.filter((one) => one.state === 'held').length
  return {
    held,
    orphans: partitions.length - held,
    worstLagMs: Math.max(0, ...partitions.map((one) => one.planningLagMs)),
    worstDueMs: Math.max(0, ...partitions.map((one) => one.dueLagMs)),
    worstSkewMs: Math.max(0, ...nodes.map((one) => Math.abs(one.clockSkewMs))),
  }
}
