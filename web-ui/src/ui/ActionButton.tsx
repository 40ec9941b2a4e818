// Buttons that change something on the server. While it is silent they do
// nothing and say why; they stay in the order of the Tab key, so that the focus
// is not lost when the server goes away.
import { Button, type ButtonProps } from 'antd'
import type { MouseEvent } from 'react'
import { useTranslation } from 'react-i18next'
import { useConnection } from './hooks'

const refuse = (event: MouseEvent) => {
  event.preventDefault()
  event.stopPropagation()
}

/** What a button gets while the server is silent; nothing while it answers. */
export function useResting(): Pick<ButtonProps, 'aria-disabled' | 'aria-description' | 'title' | 'onClick' | 'className'> | undefined {
  const { t } = useTranslation()
  const { trouble } = useConnection()
  if (!trouble) return undefined
  const why = t(`connection.${trouble}Action`)
  return { 'aria-disabled': true, 'aria-description': why, title: why, onClick: refuse, className: 'resting' }
}

export function ActionButton(props: ButtonProps) {
  const resting = useResting()
  return <Button {...props} {...resting} className={[props.className, resting?.className].filter(Boolean).join(' ') || undefined} />
}
