import { useTranslation } from 'react-i18next'
import type { ProblemItem } from '../../api/types'
import { Misfits } from './Misfits'
import { modal } from '../../ui/notices'

/** Asks whether an input that does not fit its handler is meant; resolves to the answer. */
export function useUnfit(): (handler: string, items: ProblemItem[], anyway: string) => Promise<boolean> {
  const { t } = useTranslation()
  return async (handler, items, anyway) =>
    Boolean(
      await modal.confirm({
        title: t('jobs.form.unfitTitle', { name: handler }),
        content: <Misfits items={items} />,
        okText: anyway,
        cancelText: t('action.back'),
        autoFocusButton: 'cancel',
      }),
    )
}
