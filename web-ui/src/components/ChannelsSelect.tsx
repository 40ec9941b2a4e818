import { useQuery } from '../api/useQuery'
import { Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { alertQueries } from '../api/alerts'
import type { Id } from '../api/types'

interface Props {
  id?: string
  value?: Id[]
  onChange?: (ids: Id[]) => void
  placeholder?: string
}

const MOST = 10

export function ChannelsSelect(props: Props) {
  const { t } = useTranslation()
  const channels = useQuery(alertQueries.channels())
  return (
    <Select
      {...props}
      mode="multiple"
      maxCount={MOST}
      allowClear
      showSearch={{ optionFilterProp: 'label' }}
      loading={channels.isPending}
      notFoundContent={channels.data && t('alerts.channels.emptyTitle')}
      options={channels.data?.items.map((one) => ({ value: one.id, label: `${one.name} (${t(`deliveries.${one.spec.kind}`)})` }))}
    />
  )
}
