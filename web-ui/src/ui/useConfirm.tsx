import type { ModalFuncProps } from 'antd'
import type { ComponentType } from 'react'
import { ActionButton } from './ActionButton'
import { useConnection } from './hooks'
import { modal } from './notices'

/**
 * Asks before something is changed on the server. A destructive button is never
 * the one that Enter hits, and while the server is silent none does anything.
 */
export function useConfirm(): (props: ModalFuncProps) => void {
  return (props) =>
    void modal.confirm({
      autoFocusButton: props.okButtonProps?.danger ? 'cancel' : 'ok',
      footer: (_, parts) => <Foot {...parts} text={props.okText} danger={props.okButtonProps?.danger} />,
      ...props,
    })
}

function Foot({ OkBtn, CancelBtn, text, danger }: { OkBtn: ComponentType; CancelBtn: ComponentType; text: ModalFuncProps['okText']; danger?: boolean }) {
  const { trouble } = useConnection()
  return (
    <>
      <CancelBtn />
      {trouble ? (
        <ActionButton type="primary" danger={danger}>
          {text}
        </ActionButton>
      ) : (
        <OkBtn />
      )}
    </>
  )
}
