import { createLink } from '@tanstack/react-router'
import { Button, type ButtonProps } from 'antd'
import type { Ref } from 'react'

/** A link of the router that looks like a button (and is a link to browsers and readers). */
export const LinkButton = createLink(function LinkButton(props: ButtonProps & { ref?: Ref<HTMLAnchorElement> }) {
  return <Button {...props} />
})
