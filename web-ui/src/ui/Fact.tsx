import type { ReactNode } from 'react'

/** A name and its value, in a list of facts (dl.facts). A wide one has a line of its own. */
export function Fact({ label, wide, children }: { label: string; wide?: boolean; children: ReactNode }) {
  return (
    <div className={wide ? 'wide' : undefined}>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  )
}
