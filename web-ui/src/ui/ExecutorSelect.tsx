import { useClearable } from './clearable'
import { useQuery } from '../api/useQuery'
import { Select } from 'antd'
import { useState } from 'react'
import { queries } from '../api/queries'
import { useDebounced } from './hooks'

interface Props {
  value?: string
  onChange?: (id: string | undefined) => void
  id?: string
  label: string
  placeholder?: string
  allowClear?: boolean
  /** Known name of the value, until the list has it. */
  valueName?: string
  /** Asked for by a click on a button that this one replaces: it stands open and takes over the focus. */
  asked?: boolean
}

const SEARCH_DELAY_MS = 250

/** Chooses an executor; searches at the server, so it works with thousands. */
export function ExecutorSelect({ value, onChange, id, label, placeholder, allowClear, valueName, asked }: Props) {
  const clearable = useClearable()
  const [typed, setTyped] = useState('')
  const q = useDebounced(typed, SEARCH_DELAY_MS)
  const found = useQuery({ ...queries.executors({ q, limit: 100 }), refetchInterval: false })
  const chosen = useQuery({ ...queries.executor(value ?? ''), enabled: Boolean(value) && !valueName, refetchInterval: false })
  const options = (found.data?.items ?? []).map((one) => ({ value: one.id, label: one.name }))
  if (value && !options.some((one) => one.value === value)) {
    options.unshift({ value, label: valueName ?? chosen.data?.name ?? value })
  }
  return (
    <Select
      id={id}
      aria-label={label}
      autoFocus={asked}
      defaultOpen={asked}
      // A list outside of a dialog of the browser could not be reached.
      getPopupContainer={(field: HTMLElement) => field.closest('dialog') ?? document.body}
      className="full"
      allowClear={allowClear && clearable}
      showSearch={{ filterOption: false, onSearch: setTyped }}
      placeholder={placeholder}
      value={value}
      onChange={(next: string | undefined) => onChange?.(next)}
      options={options}
      loading={found.isFetching}
    />
  )
}
