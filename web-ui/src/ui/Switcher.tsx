import { useId, type ReactNode } from 'react'

interface Props<T> {
  label?: string
  /** Set by a form, as value and onChange are. */
  id?: string
  value?: T
  onChange?: (value: T) => void
  options: { value: T; label: string; icon?: ReactNode; disabled?: boolean }[]
}

/** One of a few values, side by side. */
export function Switcher<T extends string>({ label, id, value, onChange, options }: Props<T>) {
  const name = useId()
  return (
    <span className="switcher" role="radiogroup" id={id} aria-label={label}>
      {options.map((one) => (
        <label key={one.value}>
          <input type="radio" className="sr-only" name={name} checked={one.value === value} disabled={one.disabled} onChange={() => onChange?.(one.value)} />
          {one.icon && <span aria-hidden="true">{one.icon}</span>} {one.label}
        </label>
      ))}
    </span>
  )
}
