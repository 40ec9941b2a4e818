import { SearchOutlined } from '@ant-design/icons'
import { useEffect, useEffectEvent, useRef, useState } from 'react'
import { TextField } from './TextField'

const DELAY_MS = 300

interface Props {
  value: string | undefined
  onChange: (text: string | undefined) => void
  label: string
  className?: string
}

/** A search field whose settled text goes into the address. */
export function SearchBox({ value, onChange, label, className = 'f-search' }: Props) {
  const [text, setText] = useState(value ?? '')
  const sent = useRef(value ?? '')
  const report = useEffectEvent(onChange)
  // The address changed by other means (Back, a link, "clear"): follow it.
  useEffect(() => {
    if ((value ?? '') !== sent.current) {
      sent.current = value ?? ''
      setText(value ?? '')
    }
  }, [value])
  useEffect(() => {
    if (text.trim() === sent.current) return
    const timer = setTimeout(() => {
      sent.current = text.trim()
      report(text.trim() || undefined)
    }, DELAY_MS)
    return () => clearTimeout(timer)
  }, [text])
  return <TextField className={className} type="search" clears icon={<SearchOutlined aria-hidden="true" />} label={label} value={text} onChange={setText} />
}
