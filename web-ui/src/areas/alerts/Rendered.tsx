import { useTranslation } from 'react-i18next'
import type { RenderedAlert } from '../../api/types'

/** A message as its receiver gets it. */
export function Rendered({ message }: { message: RenderedAlert }) {
  const { t } = useTranslation()
  const block = (label: string, text: string) => (
    <div>
      <div className="muted small">{label}</div>
      <pre className="code-block wrap" tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
    </div>
  )
  return (
    <div className="stack gap-2">
      {message.title && block(t('alerts.channels.subject'), message.title)}
      {message.body && block(t('alerts.channels.body'), message.body)}
      {message.html && block(t('alerts.channels.html'), message.html)}
    </div>
  )
}
