import { Button, Dropdown } from 'antd'
import { useState } from 'react'
import type { MenuButtonProps } from './MenuButton'

/** Stands open when it comes: it was asked for by a click. It takes over the focus of the button before it. */
export default function OpenMenu({ button, menu }: MenuButtonProps) {
  const [open, setOpen] = useState(true)
  return (
    <Dropdown trigger={['click']} open={open} onOpenChange={setOpen} menu={menu}>
      {/* oxlint-disable-next-line jsx-a11y/no-autofocus -- the focus was on the button that this one replaces */}
      <Button type="text" {...button} autoFocus />
    </Dropdown>
  )
}
