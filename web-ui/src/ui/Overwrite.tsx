import { Alert } from 'antd'
import type { ReactNode } from 'react'
import { ActionButton } from './ActionButton'

interface Props {
  title: string
  help: string
  /** A way to what the other person wrote. */
  look: ReactNode
  action: string
  busy: boolean
  onAction: () => void
}

/** Somebody else saved in between: theirs is kept as a version, and the person decides whether to go on. */
export function Overwrite({ title, help, look, action, busy, onAction }: Props) {
  return (
    <Alert
      type="warning"
      showIcon
      title={title}
      description={
        <div className="stack gap-2">
          <p>{help}</p>
          <div className="row">
            {look}
            <ActionButton onClick={onAction} loading={busy}>
              {action}
            </ActionButton>
          </div>
        </div>
      }
    />
  )
}
