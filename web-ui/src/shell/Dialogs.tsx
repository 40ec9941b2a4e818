import { Modal } from 'antd'
import { useEffect } from 'react'
import { drawDialogs } from '../ui/notices'

/** Draws the questions of notices.ts; its own chunk. */
export default function Dialogs() {
  const [dialogs, holder] = Modal.useModal()
  useEffect(() => {
    drawDialogs(dialogs)
    return () => drawDialogs(undefined)
  }, [dialogs])
  return holder
}
