import { DatePicker } from 'antd'
import type { Dayjs } from 'dayjs'

interface Props {
  value?: Dayjs | null
  onChange?: (value: Dayjs | null) => void
  id?: string
}

/** Date and time on the wall clock of the schedule's zone; its own chunk. */
export default function WallPicker({ value, onChange, id }: Props) {
  return <DatePicker id={id} showTime className="full" value={value} onChange={(next: Dayjs | null) => onChange?.(next)} />
}
