// Holding alerts back for a while, of one incident or of what is chosen.
import { Alert, Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { alertApi, refreshAlerts } from './alerts'
import type { AlertMatch, Incident } from '../../api/types'
import { formatWithZone } from '../../lib/time'
import { AlertMatchFields, matchOf } from './AlertMatchFields'
import { ALERT_KINDS } from './AlertWords'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { EndFields, endOf, HOUR_MS, type EndFieldsValue } from '../../ui/EndFields'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'

interface Fields extends EndFieldsValue {
  match?: AlertMatch
  reason: string
}

/** The incident's own kind and subject. */
function matchOfIncident(one: Incident): AlertMatch {
  const kinds = ALERT_KINDS.filter((kind) => kind === one.kind)
  return { kinds, ...(one.jobId ? { jobIds: [one.jobId] } : one.executorId ? { executorIds: [one.executorId] } : {}) }
}

export default function SilenceDialog({ incident, onClose }: { incident?: Incident; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<Fields>()
  const [initial] = useState<Partial<Fields>>(() => ({ lasts: HOUR_MS, match: incident && matchOfIncident(incident) }))
  const [busy, setBusy] = useState(false)
  const match: AlertMatch | undefined = Form.useWatch('match', form)
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      const made = await alertApi.createSilence({ match: matchOf(fields.match), reason: fields.reason.trim(), endsAt: endOf(fields) })
      message.success(t('alerts.silence.created', { time: formatWithZone(made.endsAt) }))
      refreshAlerts()
      onClose()
    } catch (err) {
      // There is one field for when it ends.
      if (!complainAt(form, err, ([first = '', ...rest]) => (first === 'endsAt' || first === 'duration' ? [form.getFieldValue('lasts') === 'at' ? 'until' : 'lasts'] : [first, ...rest]))) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('alerts.silence.title')} okText={t('alerts.silence.this')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={initial} onFinish={(fields) => void submit(fields)}>
        <Form.Item name="reason" label={t('alerts.silence.reason')} extra={t('alerts.silence.reasonHelp')} rules={[{ required: true, whitespace: true, message: t('field.required') }]}>
          <Input maxLength={1024} autoComplete="off" />
        </Form.Item>
        <EndFields />
        <AlertMatchFields by="id" />
        {match && Object.keys(matchOf(match)).length === 0 && <Alert type="warning" showIcon title={t('alerts.silence.whole')} />}
      </Form>
    </Dialog>
  )
}
