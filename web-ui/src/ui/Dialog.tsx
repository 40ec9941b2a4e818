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
      {/* The button of the dialog is outside of the form, so that Enter in one of several fields would do nothing. */}
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions */}
      <div
        ref={content}
        onKeyDown={(event) => {
          const { onOk, okButtonProps: ok } = props
          if (!onOk || resting || ok?.disabled || ok?.loading || event.key !== 'Enter' || event.nativeEvent.isComposing || event.defaultPrevented || !confirms(event.target)) return
          event.preventDefault()
          onOk(event as never)
        }}
      >
        {children}
      </div>
    </Modal>
  )
}

/** Whether Enter there confirms a dialog: a field for text without a list or a calendar of its own. */
const confirms = (target: EventTarget) => target instanceof HTMLInputElement && !['button', 'checkbox', 'radio', 'file'].includes(target.type) && target.getAttribute('role') !== 'combobox' && !target.closest('.ant-picker')

/** Of something that takes the focus as long as it is rendered. */
export function useReturnFocus(): void {
  // While it is rendered first, the focus is still on what opened it.
  const [giveBack] = useState(rememberFocus)
  useEffect(() => giveBack, [giveBack])
}
