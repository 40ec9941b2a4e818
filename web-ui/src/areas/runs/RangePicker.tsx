import { DatePicker } from 'antd'
import dayjs from 'dayjs'
import { useTranslation } from 'react-i18next'

interface Props {
  from: string | undefined
  to: string | undefined
  onChange: (from: string | undefined, to: string | undefined) => void
}

const day = (value: string | undefined) => (value ? dayjs(value) : null)

/** From and to, each may be open; its own chunk. */
export default function RangePicker({ from, to, onChange }: Props) {
  const { t } = useTranslation()
  return (
    <DatePicker.RangePicker
      showTime
      // A list outside of a dialog of the browser could not be reached.
      getPopupContainer={(field) => field.closest('dialog') ?? document.body}
      allowEmpty={[true, true]}
      aria-label={t('runs.list.time')}
      placeholder={[t('runs.list.from'), t('runs.list.to')]}
      value={[day(from), day(to)]}
      onChange={(range) => onChange(range?.[0]?.toISOString(), range?.[1]?.toISOString())}
    />
  )
}
