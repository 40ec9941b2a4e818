import { DisconnectOutlined } from '@ant-design/icons'
import { Modal, type ModalProps } from 'antd'
import { useEffect, useRef, useState } from 'react'
import { focusFirstField, rememberFocus } from '../lib/focus'
import { useResting } from './ActionButton'

/**
 * A dialog that is there while it is rendered. It begins at its first field
 * (the library: at "Close") and gives the focus back to what opened it. While
 * the server is silent it cannot be confirmed, and what was entered stays.
 */
export function Dialog({ children, ...props }: Omit<ModalProps, 'open' | 'afterOpenChange'>) {
  const content = useRef<HTMLDivElement>(null)
  const resting = useResting()
  useReturnFocus()
  return (
    <Modal {...props} {...(resting && { onOk: undefined })} okButtonProps={{ ...props.okButtonProps, ...resting }} open afterOpenChange={(open) => open && focusFirstField(content.current)}>
      {resting && (
        <p className="banner small" role="status">
          <DisconnectOutlined aria-hidden /> {resting.title}
        </p>
      )}
      <div ref={content}>{children}</div>
    </Modal>
  )
}

/** Of something that takes the focus as long as it is rendered. */
export function useReturnFocus(): void {
  // While it is rendered first, the focus is still on what opened it.
  const [giveBack] = useState(rememberFocus)
  useEffect(() => giveBack, [giveBack])
}
