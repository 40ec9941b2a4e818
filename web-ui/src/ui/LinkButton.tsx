import { createLink } from '@tanstack/react-router'
import { Button, type ButtonProps } from 'antd'
import type { Ref } from 'react'

interface Props extends Omit<ButtonProps, 'type'> {
  /** The main action of the page. The router keeps `type` to itself. */
  primary?: boolean
  ref?: Ref<HTMLAnchorElement>
}

/** A link of the router that looks like a button (and is a link to browsers and readers). */
export const LinkButton = createLink(function LinkButton({ primary, ...props }: Props) {
  return <Button {...props} {...(primary ? { color: 'primary', variant: 'solid' } : {})} />
})
