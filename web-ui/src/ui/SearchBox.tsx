import { SearchOutlined } from '@ant-design/icons'
import { Input } from 'antd'
import { useEffect, useEffectEvent, useRef, useState } from 'react'

const DELAY_MS = 300

/** A search field whose settled text goes into the address. */
export function SearchBox({ value, onChange, label }: { value: string | undefined; onChange: (text: string | undefined) => void; label: string }) {
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
  return (
    <Input
      className="f-search"
      type="search"
      allowClear
      prefix={<SearchOutlined aria-hidden="true" />}
      aria-label={label}
      placeholder={label}
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  )
}
