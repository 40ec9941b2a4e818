import { Drawer } from 'antd'
import type { ReactNode } from 'react'
import { useReturnFocus } from '../ui/Dialog'

/** The navigation on narrow screens; its own chunk, as wide ones never need it. */
export default function NavDrawer({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  useReturnFocus()
  return (
    <Drawer placement="left" size={260} open onClose={onClose} title="Carillon" styles={{ body: { padding: 0 } }}>
      {children}
    </Drawer>
  )
}
