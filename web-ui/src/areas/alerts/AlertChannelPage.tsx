// Making and changing a channel.
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Checkbox, Form, Input, InputNumber, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { alertApi, alertQueries, refreshAlerts } from './alerts'
import { readOnce } from '../../api/queries'
import type { AlertChannel, ChannelKind, ChannelPreview, RenderedAlert } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { useKindText } from './AlertWords'
import { ChannelTest } from './ChannelTest'
import { complainAt } from '../../ui/complain'
import { EditPage, FormFoot } from '../../ui/EditPage'
import { useShowError } from '../../ui/hooks'
import { LinkButton } from '../../ui/LinkButton'
import { Overwrite } from '../../ui/Overwrite'
import { Page } from '../../ui/Page'
import { Rendered } from './Rendered'
import { useVersionedForm } from '../../ui/useVersionedForm'
import { CHANNEL_KINDS, channelFieldsOf, channelWriteOf, templatesOf, TRAITS, type ChannelFields } from './alertForm'

const crumbs = (title: string) => <Link to="/settings/notifications/channels">{title}</Link>

export function AlertChannelNewPage() {
  const { t } = useTranslation()
  return (
    <Page title={t('alerts.channels.createTitle')} crumbs={crumbs(t('alerts.notifications.title'))}>
      <ChannelForm />
    </Page>
  )
}

export function AlertChannelEditPage() {
  const { t } = useTranslation()
  const { channelId } = useParams({ from: '/app/settings/notifications/channels/$channelId' })
  return (
    <EditPage stored={useQuery(readOnce(alertQueries.channel(channelId)))} title={({ name }) => t('alerts.channels.editTitle', { name })} crumbs={() => crumbs(t('alerts.notifications.title'))}>
      {(channel) => <ChannelForm key={channel.version} stored={channel} />}
    </EditPage>
  )
}

function ChannelForm({ stored }: { stored?: AlertChannel }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { form, props, busy, theirs, save } = useVersionedForm<AlertChannel, ChannelFields>({
    stored,
    initial: () => channelFieldsOf(stored),
    write: (fields, version) => (stored ? alertApi.updateChannel(stored.id, version, channelWriteOf(fields, stored.labels)) : alertApi.createChannel(channelWriteOf(fields))),
    read: (id) => alertApi.channel(id),
    done: () => {
      refreshAlerts()
      void navigate({ to: '/settings/notifications/channels' })
    },
  })
  const kind: ChannelKind = Form.useWatch('kind', form) ?? stored?.spec.kind ?? 'email'
  return (
    <Form {...props}>
      <div className="stack">
        {theirs && (
          <Overwrite
            title={t('alerts.channels.conflict')}
            help={t('connections.conflictHelp', { n: theirs.version })}
            look={
              <Link to="/settings/notifications/channels/$channelId" params={{ channelId: theirs.id }} target="_blank" rel="noreferrer">
                {t('connections.conflictLook', { n: theirs.version })}
              </Link>
            }
            action={t('connections.conflictOver')}
            busy={busy}
            onAction={() => void save(theirs.version)}
          />
        )}
        <section className="card" aria-label={t('alerts.channels.receiver')}>
          <h2>{t('alerts.channels.receiver')}</h2>
          <div className="form-fields">
            <Form.Item name="name" label={t('field.name')} rules={[{ required: true, whitespace: true, message: t('field.required') }]}>
              <Input maxLength={128} autoComplete="off" />
            </Form.Item>
            <Form.Item name="kind" label={t('alerts.channels.kind')} extra={stored ? undefined : t('alerts.channels.kindHelp')}>
              <Select disabled={Boolean(stored)} options={CHANNEL_KINDS.map((value) => ({ value, label: t(`deliveries.${value}`) }))} />
            </Form.Item>
            <Form.Item name="language" label={t('alerts.channels.language')}>
              <Select
                options={[
                  { value: '', label: t('alerts.channels.serverLanguage') },
                  { value: 'en', label: 'English' },
                  { value: 'zh', label: '中文' },
                ]}
              />
            </Form.Item>
            <Form.Item name="enabled" valuePropName="checked" label=" " colon={false}>
              <Checkbox>{t('alerts.channels.enabled')}</Checkbox>
            </Form.Item>
            <ReceiverFields kind={kind} stored={stored} />
            <Form.Item className="wide" name="description" label={t('field.description')}>
              <Input.TextArea maxLength={4096} autoSize={{ minRows: 1, maxRows: 5 }} />
            </Form.Item>
          </div>
        </section>
        <Templates kind={kind} />
        <Preview stored={stored} kind={kind} />
      </div>
      <FormFoot isNew={!stored} busy={busy} cancel={<LinkButton to="/settings/notifications/channels">{t('action.cancel')}</LinkButton>} />
    </Form>
  )
}

function ReceiverFields({ kind, stored }: { kind: ChannelKind; stored: AlertChannel | undefined }) {
  const { t } = useTranslation()
  const traits = TRAITS[kind]
  const noSecret: boolean = Form.useWatch('noSecret') ?? false
  const noToken: boolean = Form.useWatch('noToken') ?? false
  const required = { required: true, whitespace: true, message: t('field.required') }
  return (
    <>
      {traits.url && (
        <Form.Item className="wide" name="url" label={t('alerts.channels.url')} rules={stored ? [] : [required]} extra={stored ? t('alerts.channels.urlKept', { host: stored.spec.host ?? '' }) : t('alerts.channels.sealed')}>
          <Input className="mono" maxLength={2048} autoComplete="off" spellCheck={false} placeholder="https://" />
        </Form.Item>
      )}
      {traits.emails && (
        <Form.Item className="wide" name="emails" label={t('alerts.channels.emails')} rules={[required]} extra={t('alerts.channels.emailsHelp')}>
          <Input.TextArea autoSize={{ minRows: 2, maxRows: 16 }} autoComplete="off" spellCheck={false} />
        </Form.Item>
      )}
      {traits.chat && (
        <>
          <Form.Item name="chatId" label={t('alerts.channels.chatId')} rules={[required]} extra={t('alerts.channels.chatIdHelp')}>
            <Input className="mono" maxLength={65} autoComplete="off" spellCheck={false} />
          </Form.Item>
          <Form.Item name="threadId" label={t('alerts.channels.threadId')}>
            <InputNumber min={1} precision={0} className="full" />
          </Form.Item>
        </>
      )}
      {traits.token && (
        <Form.Item name="token" label={t(`alerts.channels.token.${traits.token}`)} rules={stored || kind === 'webhook' ? [] : [required]} extra={t('alerts.channels.sealed')}>
          <Input.Password maxLength={1024} autoComplete="new-password" disabled={noToken} placeholder={stored?.secrets.token ? t('connections.kept') : undefined} />
        </Form.Item>
      )}
      {kind === 'webhook' && stored?.secrets.token && (
        <Form.Item name="noToken" valuePropName="checked" label=" " colon={false}>
          <Checkbox>{`${t('connections.remove')}: ${t('alerts.channels.token.bearer')}`}</Checkbox>
        </Form.Item>
      )}
      {traits.secret && (
        <Form.Item name="secret" label={t('alerts.channels.secret')} extra={t('alerts.channels.sealed')}>
          <Input.Password maxLength={1024} autoComplete="new-password" disabled={noSecret} placeholder={stored?.secrets.secret ? t('connections.kept') : undefined} />
        </Form.Item>
      )}
      {traits.secret && stored?.secrets.secret && (
        <Form.Item name="noSecret" valuePropName="checked" label=" " colon={false}>
          <Checkbox>{`${t('connections.remove')}: ${t('alerts.channels.secret')}`}</Checkbox>
        </Form.Item>
      )}
      {traits.baseUrl && (
        <Form.Item name="baseUrl" label={t('alerts.channels.baseUrl')} extra={t('alerts.channels.baseUrlHelp')}>
          <Input className="mono" maxLength={2048} autoComplete="off" spellCheck={false} />
        </Form.Item>
      )}
      {traits.mentions && (
        <>
          <Form.Item name="mentions" label={t('alerts.channels.mentions')} extra={t('alerts.channels.mentionsHelp')}>
            <Input.TextArea className="mono" autoSize={{ minRows: 1, maxRows: 10 }} spellCheck={false} />
          </Form.Item>
          <Form.Item name="mentionAll" valuePropName="checked" label=" " colon={false}>
            <Checkbox>{t('alerts.channels.mentionAll')}</Checkbox>
          </Form.Item>
        </>
      )}
    </>
  )
}

function Templates({ kind }: { kind: ChannelKind }) {
  const { t } = useTranslation()
  const { templates } = TRAITS[kind]
  return (
    <section className="card" aria-label={t('alerts.channels.templates')}>
      <h2>{t('alerts.channels.templates')}</h2>
      <p className="muted small">{t('alerts.channels.templatesHelp', { example: '{{.Job.Name}}' })}</p>
      {templates.map((name) => (
        <Form.Item key={name} name={['templates', name]} label={t(`alerts.channels.template.${name}`)}>
          <Input.TextArea className="mono" maxLength={name === 'title' ? 1024 : 16_384} autoSize={{ minRows: name === 'title' ? 1 : 2, maxRows: 16 }} spellCheck={false} />
        </Form.Item>
      ))}
      {kind === 'webhook' && (
        <Form.Item name={['templates', 'contentType']} label={t('alerts.channels.contentType')}>
          <Input className="mono" maxLength={100} autoComplete="off" spellCheck={false} placeholder="application/json" />
        </Form.Item>
      )}
    </section>
  )
}

const SAMPLES: NonNullable<ChannelPreview['alert']>[] = ['run_failed', 'run_timed_out', 'run_lost', 'run_missed', 'no_executor', 'run_succeeded', 'executor_flapping', 'instance_gone', 'test']

/** What the words of the form make of a sample, or of a run. */
function Preview({ stored, kind }: { stored: AlertChannel | undefined; kind: ChannelKind }) {
  const { t } = useTranslation()
  const form = Form.useFormInstance<ChannelFields>()
  const showError = useShowError()
  const kindText = useKindText()
  const [alert, setAlert] = useState<NonNullable<ChannelPreview['alert']>>('run_failed')
  const [runId, setRunId] = useState('')
  const [shown, setShown] = useState<RenderedAlert>()
  const [busy, setBusy] = useState(false)
  const show = async () => {
    const fields = form.getFieldsValue(true) as ChannelFields
    setBusy(true)
    try {
      const language = fields.language ? { language: fields.language } : {}
      setShown(await alertApi.previewChannel({ spec: { kind, ...language, templates: templatesOf(fields) }, ...(runId.trim() ? { runId: runId.trim() } : { alert }) }))
    } catch (err) {
      setShown(undefined)
      if (!complainAt(form, err)) showError(err)
    }
    setBusy(false)
  }
  return (
    <section className="card" aria-label={t('alerts.channels.preview')}>
      <div className="card-head">
        <div className="grow">
          <h2>{t('alerts.channels.preview')}</h2>
          <p className="muted small">{t('alerts.channels.previewHelp')}</p>
        </div>
        {stored && <ChannelTest channel={stored} />}
      </div>
      <div className="row below-3">
        <Select aria-label={t('alerts.channels.sample')} className="w-200" value={alert} onChange={setAlert} disabled={runId.trim() !== ''} options={SAMPLES.map((value) => ({ value, label: kindText(value) }))} />
        <Input aria-label={t('alerts.channels.runId')} placeholder={t('alerts.channels.runId')} className="w-220" value={runId} onChange={(event) => setRunId(event.target.value)} />
        <ActionButton loading={busy} onClick={() => void show()}>
          {t('alerts.channels.previewShow')}
        </ActionButton>
      </div>
      {shown && <Rendered message={shown} />}
    </section>
  )
}
