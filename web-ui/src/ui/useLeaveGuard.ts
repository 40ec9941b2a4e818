import { useBlocker } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { modal, prepareDialogs } from './notices'

/** Asks before a page with changes that are not saved is left. */
export function useLeaveGuard(dirty: () => boolean): void {
  const { t } = useTranslation()
  // The question must be there when the server is not.
  useEffect(() => {
    addEventListener('input', prepareDialogs, { once: true })
    return () => removeEventListener('input', prepareDialogs)
  }, [])
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
