import { CopyOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import { useTranslation } from 'react-i18next'
import { copyText } from '../lib/misc'
import { message } from './notices'

export function CopyButton({ text, label, size }: { text: string; label?: string; size?: 'small' | 'middle' }) {
  const { t } = useTranslation()
  const copy = async () => {
    if (await copyText(text)) message.success(t('action.copied'))
    else message.error(t('action.copyFailed'))
  }
  return (
    <Button size={size} icon={<CopyOutlined />} onClick={copy}>
      {label ?? t('action.copy')}
    </Button>
  )
}

/** A secret or a snippet, with a button to copy it. */
export function CopyBlock({ text, label }: { text: string; label: string }) {
  return (
    <div className="stack gap-1">
      <pre className="code-block" tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <div>
        <CopyButton text={text} size="small" />
      </div>
    </div>
  )
}
