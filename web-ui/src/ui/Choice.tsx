// Filters with few values. They are the browser's own, so that a list loads no part of the library's select.
import { DownOutlined } from '@ant-design/icons'
import { useEffect, useId, useRef, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

export interface Option<T> {
  value: T
  label: string
}

interface Props<T> {
  label: string
  value: T | undefined
  onChange: (value: T | undefined) => void
  options: Option<T>[]
  /** One value is always chosen. */
  always?: boolean
  /** The label stands before the value, where the value alone says too little. */
  named?: boolean
}

/** One of a few values, or any. */
export function Choice<T extends string>({ label, value, onChange, options, always, named }: Props<T>) {
  const { t } = useTranslation()
  return (
    <label className="f-item">
      <span className="f-label">{label}</span>
      <select className="native-select full" value={value ?? ''} onChange={(event) => onChange((event.target.value || undefined) as T | undefined)}>
        {!always && <option value="">{t('list.anyOf', { what: label })}</option>}
        {options.map((one) => (
          <option key={one.value} value={one.value}>
            {named ? `${label}: ${one.label}` : one.label}
          </option>
        ))}
      </select>
    </label>
  )
}

interface Several<T> {
  label: string
  values: T[]
  onChange: (values: T[]) => void
  options: (Option<T> & { draw: ReactNode })[]
}

/** Some of a few values, or any: a button with a list of check boxes. */
export function Choices<T extends string>({ label, values, onChange, options }: Several<T>) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const id = useId()
  useEffect(() => {
    if (!open) return
    const onDown = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false)
    }
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return
      event.preventDefault() // not of the sheet around it
      setOpen(false)
      button.current?.focus()
    }
    document.addEventListener('pointerdown', onDown)
    document.addEventListener('keydown', onKey)
    return () => {
      document.removeEventListener('pointerdown', onDown)
      document.removeEventListener('keydown', onKey)
    }
  }, [open])
  const chosen = options.filter((one) => values.includes(one.value))
  const text = chosen.length === 0 ? t('list.anyOf', { what: label }) : `${label}: ${chosen[0]?.label ?? ''}${chosen.length > 1 ? ` +${chosen.length - 1}` : ''}`
  return (
    <div className="f-item choices" ref={box} onBlur={(event) => event.relatedTarget && !box.current?.contains(event.relatedTarget) && setOpen(false)}>
      <span className="f-label" aria-hidden="true">
        {label}
      </span>
      <button ref={button} type="button" className="native-select full" aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => setOpen(!open)}>
        <span className="clip">{text}</span> <DownOutlined aria-hidden />
      </button>
      {open && (
        <fieldset className="choices-list" id={id}>
          <legend className="sr-only">{label}</legend>
          {options.map((one) => (
            <label key={one.value}>
              <input type="checkbox" checked={values.includes(one.value)} onChange={(event) => onChange(event.target.checked ? [...values, one.value] : values.filter((each) => each !== one.value))} /> {one.draw}
            </label>
          ))}
        </fieldset>
      )}
    </div>
  )
}
