// The calendars of a schedule, in the job's form.
import { useQuery } from '../../../api/useQuery'
import { Form, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { calendarQueries } from '../../calendars/calendars'

const LIMIT = 200
/** As the API has it. */
const MAX_CALENDARS = 8

export function CalendarFields() {
  const { t } = useTranslation()
  const calendars = useQuery({ ...calendarQueries.calendars(undefined, LIMIT), refetchInterval: false })
  const chosen = Form.useWatch<string[] | undefined>(['schedule', 'calendarIds']) ?? []
  const options = (calendars.data?.items ?? []).map((one) => ({ value: one.id, label: one.name }))
  return (
    <>
      <Form.Item name={['schedule', 'calendarIds']} label={t('calendars.inJob')} extra={t('calendars.inJobHelp')}>
        <Select
          mode="multiple"
          maxCount={MAX_CALENDARS}
          showSearch={{ optionFilterProp: 'label' }}
          placeholder={t('calendars.noneInJob')}
          options={options}
          loading={calendars.isFetching}
        />
      </Form.Item>
      <Form.Item name={['schedule', 'calendarDays']} label={t('calendars.inJobDays')} hidden={chosen.length === 0}>
        <Select options={(['not_holidays', 'workdays', 'all'] as const).map((value) => ({ value, label: t(`calendars.days_${value}`) }))} />
      </Form.Item>
    </>
  )
}
