import { useBlocker } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { modal } from './notices'

/** Asks before a page with changes that are not saved is left. */
export function useLeaveGuard(dirty: () => boolean): void {
  const { t } = useTranslation()
  useBlocker({
    enableBeforeUnload: dirty,
    shouldBlockFn: async () => {
      if (!dirty()) return false
      const leave = await modal.confirm({
        title: t('jobs.form.leaveTitle'),
        content: t('jobs.form.leaveHelp'),
        okText: t('jobs.form.leave'),
        cancelText: t('jobs.form.stay'),
        autoFocusButton: 'cancel',
      })
      return !leave
    },
  })
}
