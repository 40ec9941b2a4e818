// A text field without the library, whose fields bring half of its form.
import { CloseOutlined } from '@ant-design/icons'
import { useRef, type InputHTMLAttributes, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

interface Props extends Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value' | 'prefix'> {
  label: string
  value?: string
  onChange: (text: string) => void
  /** Enter, with or without Shift. */
  onEnter?: (shift: boolean) => void
  icon?: ReactNode
  /** Shows a button that empties the field. */
  clears?: boolean
}

/** Its label is its placeholder, unless that is given. */
export function TextField({ label, value, onChange, onEnter, icon, clears, className, ...rest }: Props) {
  const { t } = useTranslation()
  const field = useRef<HTMLInputElement>(null)
  return (
    <span className={['text-field', className].filter(Boolean).join(' ')}>
      {icon}
      <input
        placeholder={label}
        {...rest}
        ref={field}
        aria-label={label}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.nativeEvent.isComposing || !onEnter) return
          event.preventDefault()
          onEnter(event.shiftKey)
        }}
      />
      {clears && value && (
        <button
          type="button"
          className="plain-button"
          aria-label={t('action.clear')}
          onClick={() => {
            onChange('')
            field.current?.focus()
          }}
        >
          <CloseOutlined aria-hidden />
        </button>
      )}
    </span>
  )
}
