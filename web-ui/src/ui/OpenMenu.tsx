import { Button, Dropdown, type ButtonProps, type MenuProps } from 'antd'
import { useRef, useState } from 'react'

interface Props {
  button: ButtonProps
  menu: MenuProps
  /** Asked for by a click on a button that this one replaces: it stands open and takes over the focus. */
  asked?: boolean
}

/**
 * A button and its menu, in which the arrow keys go from item to item. The
 * focus is back on the button before an item acts: what an item opens returns
 * to where the person was.
 */
export default function OpenMenu({ button, menu, asked = false }: Props) {
  const [open, setOpen] = useState(asked)
  const own = useRef<HTMLButtonElement>(null)
  const onOpenChange = (next: boolean) => {
    if (!next) own.current?.focus()
    setOpen(next)
  }
  const onClick: MenuProps['onClick'] = (info) => {
    // The rest of an Enter would press the button, or one of what is opened.
    info.domEvent.preventDefault()
    own.current?.focus()
    menu.onClick?.(info)
  }
  return (
    <Dropdown trigger={['click']} autoFocus open={open} onOpenChange={onOpenChange} menu={{ ...menu, onClick }}>
      {/* oxlint-disable-next-line jsx-a11y/no-autofocus -- the focus was on the button that this one replaces */}
      <Button type="text" {...button} ref={own} aria-haspopup="menu" autoFocus={asked} />
    </Dropdown>
  )
}
