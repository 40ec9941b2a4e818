import type { ReactNode } from 'react'

interface Props {
  /** Absent: the box keeps its own state, from unchecked. */
  checked?: boolean
  onChange: (on: boolean) => void
  children: ReactNode
}

/** A check box of the browser, with its words beside it. */
export function Check({ checked, onChange, children }: Props) {
  return (
    <label className="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} /> {children}
    </label>
  )
}
