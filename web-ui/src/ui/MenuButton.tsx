// A button of the top bar that opens a menu. The menu itself (20 kB) comes
// when it is first asked for: every page has these buttons, few people use
// them.
import { Button, type ButtonProps, type MenuProps } from 'antd'
import { lazy, Suspense, useState } from 'react'
import { loadChunk } from '../lib/chunk'

const OpenMenu = lazy(() => loadChunk(() => import('./OpenMenu')))

export interface MenuButtonProps {
  button: ButtonProps
  menu: MenuProps
}

export function MenuButton({ button, menu }: MenuButtonProps) {
  const [asked, setAsked] = useState(false)
  const closed = <Button type="text" {...button} aria-haspopup="menu" onClick={() => setAsked(true)} />
  if (!asked) return closed
  return (
    <Suspense fallback={closed}>
      <OpenMenu button={button} menu={menu} asked />
    </Suspense>
  )
}
