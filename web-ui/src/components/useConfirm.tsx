import { App, type ModalFuncProps } from 'antd'
import type { ComponentType } from 'react'
import { ActionButton } from './ActionButton'
import { useConnection } from './hooks'

/**
 * Asks before something is changed on the server: Enter does not do it, the
 * focus stands on the way out, and while the server is silent it cannot be done.
 */
export function useConfirm(): (props: ModalFuncProps) => void {
  const { modal } = App.useApp()
  return (props) =>
    void modal.confirm({
      autoFocusButton: 'cancel',
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
