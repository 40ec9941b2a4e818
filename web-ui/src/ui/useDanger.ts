import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useShowError } from './hooks'
import { message } from './notices'
import { useConfirm } from './useConfirm'

interface Danger {
  title: string
  content: ReactNode
  /** What the button says. */
  action: string
  /** Default: cancel. */
  cancel?: string
  work: () => Promise<unknown>
  /** What is said when it was done. */
  done: string
  /** After the work, done or not. */
  after?: () => void
}

/** Asks before what cannot be undone: Enter does not do it, the focus stands on the way out. */
export function useDanger(): (danger: Danger) => void {
  const { t } = useTranslation()
  const confirm = useConfirm()
  const showError = useShowError()
  return ({ title, content, action, cancel = t('action.cancel'), work, done, after }) =>
    confirm({
      title,
      content,
      okText: action,
      okButtonProps: { danger: true },
      cancelText: cancel,
      onOk: async () => {
        try {
          await work()
          message.success(done)
        } catch (err) {
          showError(err)
        }
        after?.()
      },
    })
}
