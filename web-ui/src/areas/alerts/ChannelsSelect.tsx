import { useQuery } from '../../api/useQuery'
import { Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { alertQueries } from './alerts'
import { useClearable } from '../../ui/clearable'

interface Props {
  id?: string
  value?: string[]
  onChange?: (words: string[]) => void
  placeholder?: string
  /** What stands for a channel. */
  by?: 'id' | 'name'
}

const MOST = 10

export function ChannelsSelect({ by = 'id', ...props }: Props) {
  const { t } = useTranslation()
  const clearable = useClearable()
  const channels = useQuery(alertQueries.channels())
  return (
    <Select
      {...props}
      mode="multiple"
      maxCount={MOST}
      allowClear={clearable}
      showSearch={{ optionFilterProp: 'label' }}
      loading={channels.isPending}
      notFoundContent={channels.data && t('alerts.channels.emptyTitle')}
      options={channels.data?.items.map((one) => ({ value: one[by], label: `${one.name} (${t(`deliveries.${one.spec.kind}`)})` }))}
    />
  )
}
