import { DatePicker } from 'antd'
import type { Dayjs } from 'dayjs'

interface Props {
  label: string
  format: string
  withTime: boolean
  value: [Dayjs, Dayjs] | null
  onChange: (range: [Dayjs, Dayjs] | null) => void
}

/** The days or the window of a line; its own chunk. */
export default function LinePicker({ label, format, withTime, value, onChange }: Props) {
  return (
    <DatePicker.RangePicker
      // It takes the place of the button that asked for it.
      // oxlint-disable-next-line jsx-a11y/no-autofocus
      autoFocus
      aria-label={label}
      showTime={withTime ? { format: 'HH:mm' } : false}
      format={format}
      value={value}
      onChange={(next) => onChange(next?.[0] && next[1] ? [next[0], next[1]] : null)}
    />
  )
}
