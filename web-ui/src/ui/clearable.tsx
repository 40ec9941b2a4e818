import { CloseCircleFilled } from '@ant-design/icons'
import { useTranslation } from 'react-i18next'

/** What a select's `allowClear` takes: the library names its button in English only. */
export function useClearable() {
  const { t } = useTranslation()
  return { label: t('action.clear'), clearIcon: <CloseCircleFilled /> }
}
