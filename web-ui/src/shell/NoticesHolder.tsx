import { CheckCircleFilled, CloseCircleFilled, CloseOutlined, InfoCircleFilled } from '@ant-design/icons'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { useTranslation } from 'react-i18next'
import { later } from '../ui/later'
import { dismiss, getNotices, subscribeNotices, type Toast } from '../ui/notices'

const Dialogs = later(() => import('./Dialogs'))

const ICON = {
  success: <CheckCircleFilled className="st-success" aria-hidden />,
  info: <InfoCircleFilled className="st-running" aria-hidden />,
  error: <CloseCircleFilled className="st-failed" aria-hidden />,
}

/** Draws what is said and asked by notices.ts. */
export function NoticesHolder() {
  const { toasts, asked } = useSyncExternalStore(subscribeNotices, getNotices)
  return (
    <>
      <div className="toasts" aria-live="polite">
        {toasts.map((toast) => (
          <ToastCard key={toast.id} toast={toast} />
        ))}
      </div>
      {asked && <Dialogs />}
    </>
  )
}

function ToastCard({ toast: { id, look, title, description, actions, seconds } }: { toast: Toast }) {
  const { t } = useTranslation()
  const [held, setHeld] = useState(false)
  useEffect(() => {
    if (held) return
    const timer = setTimeout(() => dismiss(id), seconds * 1_000)
    return () => clearTimeout(timer)
  }, [id, held, seconds])
  return (
    <div
      className="toast"
      role={look === 'error' ? 'alert' : undefined}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      {ICON[look]}
      <div className="grow">
        <div>{title}</div>
        {description && <div className="toast-more">{description}</div>}
        {actions}
      </div>
      <button type="button" className="plain-button" aria-label={t('action.close')} onClick={() => dismiss(id)}>
        <CloseOutlined aria-hidden />
      </button>
    </div>
  )
}
