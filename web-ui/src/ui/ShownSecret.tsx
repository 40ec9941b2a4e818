import { Alert, Button } from 'antd'
import { useTranslation } from 'react-i18next'
import { CopyBlock } from './CopyButton'
import { Dialog } from './Dialog'

/** A secret that the server shows once. */
export default function ShownSecret({ title, help, secret, onClose }: { title: string; help: string; secret: string; onClose: () => void }) {
  const { t } = useTranslation()
  return (
    <Dialog title={title} onCancel={onClose} footer={<Button onClick={onClose}>{t('action.close')}</Button>}>
      <div className="stack">
        <Alert type="warning" showIcon title={help} />
        <CopyBlock text={secret} label={title} />
      </div>
    </Dialog>
  )
}
