import { Form } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { alertApi, refreshAlerts } from './alerts'
import type { AlertSettings, Id } from '../../api/types'
import { ChannelsSelect } from './ChannelsSelect'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { QuietHoursFields, quietFieldsOf, quietHoursOf, type QuietFields } from './QuietHoursFields'

interface DefaultsFields extends QuietFields {
  defaultChannelIds: Id[]
}

export default function DefaultsDialog({ settings, onClose }: { settings: AlertSettings; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<DefaultsFields>()
  const [busy, setBusy] = useState(false)
  const save = async () => {
    const fields = form.getFieldsValue(true) as DefaultsFields
    setBusy(true)
    try {
      await alertApi.updateSettings(settings.version, { defaultChannelIds: fields.defaultChannelIds, ...quietHoursOf(fields) })
      message.success(t('alerts.rules.settingsSaved'))
      refreshAlerts()
      onClose()
    } catch (err) {
      if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('alerts.rules.defaults')} okText={t('action.save')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ defaultChannelIds: settings.defaultChannelIds, ...quietFieldsOf(settings.quietHours) }} onFinish={() => void save()}>
        <Form.Item name="defaultChannelIds" label={t('alerts.rules.defaultChannels')} extra={t('alerts.rules.defaultsHelp')}>
          <ChannelsSelect />
        </Form.Item>
        <QuietHoursFields help={t('alerts.quiet.tenant')} />
      </Form>
    </Dialog>
  )
}
