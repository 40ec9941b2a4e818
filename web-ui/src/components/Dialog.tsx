import { Modal, type ModalProps } from 'antd'
import { useEffect, useRef, useState } from 'react'
import { focusFirstField, rememberFocus } from '../lib/focus'

/**
 * A dialog that is there while it is rendered. It begins at its first field
 * (the library: at "Close") and gives the focus back to what opened it.
 */
export function Dialog({ children, ...props }: Omit<ModalProps, 'open' | 'afterOpenChange'>) {
  const content = useRef<HTMLDivElement>(null)
  useReturnFocus()
  return (
    <Modal {...props} open afterOpenChange={(open) => open && focusFirstField(content.current)}>
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
