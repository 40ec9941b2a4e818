import type { ReactNode } from 'react'

/** A name and its value, in a list of facts (dl.facts). */
export function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  )
}
