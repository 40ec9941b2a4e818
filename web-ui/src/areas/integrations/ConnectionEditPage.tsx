// Writing a connection to a broker. Secrets are written only: a field that is
// left empty keeps what is there.
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Checkbox, Form, Input, InputNumber, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { connectionApi, connectionQueries, refreshConnections } from './connections'
import { queryClient, readOnce } from '../../api/queries'
import type { Broker, Connection } from '../../api/types'
import { EditPage, FormFoot } from '../../ui/EditPage'
import { LinkButton } from '../../ui/LinkButton'
import { Overwrite } from '../../ui/Overwrite'
import { Page } from '../../ui/Page'
import { useVersionedForm } from '../../ui/useVersionedForm'
import { BROKERS, connectionFieldsOf, connectionWriteOf, EXAMPLE_ADDRESS, MECHANISMS, type ConnectionFields } from './connectionForm'

export function ConnectionNewPage() {
  const { t } = useTranslation()
  return (
    <Page title={t('connections.createTitle')} crumbs={<Link to="/settings/integrations/connections">{t('connections.title')}</Link>}>
      <ConnectionForm />
    </Page>
  )
}

export function ConnectionEditPage() {
  const { t } = useTranslation()
  const { connectionId } = useParams({ from: '/app/settings/integrations/connections/$connectionId/edit' })
  return (
    <EditPage
      stored={useQuery(readOnce(connectionQueries.one(connectionId)))}
      title={({ name }) => t('connections.editTitle', { name })}
      crumbs={({ name }) => (
        <>
          <Link to="/settings/integrations/connections">{t('connections.title')}</Link> ›{' '}
          <Link to="/settings/integrations/connections/$connectionId" params={{ connectionId }}>
            {name}
          </Link>
        </>
      )}
    >
      {(connection) => <ConnectionForm key={connection.version} stored={connection} />}
    </EditPage>
  )
}

function ConnectionForm({ stored }: { stored?: Connection }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { props, busy, theirs, save } = useVersionedForm<Connection, ConnectionFields>({
    stored,
    initial: () => connectionFieldsOf(stored),
    write: (fields, version) => (stored ? connectionApi.updateConnection(stored.id, version, connectionWriteOf(fields, stored.labels)) : connectionApi.createConnection(connectionWriteOf(fields))),
    read: connectionApi.connection,
    done: (saved) => {
      queryClient.setQueryData(connectionQueries.one(saved.id).queryKey, saved)
      refreshConnections()
      void navigate({ to: '/settings/integrations/connections/$connectionId', params: { connectionId: saved.id } })
    },
  })
  return (
    <Form {...props}>
      <div className="stack">
        {theirs && (
          <Overwrite
            title={t('connections.conflictTitle')}
            help={t('connections.conflictHelp', { n: theirs.version })}
            look={
              <Link to="/settings/integrations/connections/$connectionId" params={{ connectionId: theirs.id }} target="_blank" rel="noreferrer">
                {t('connections.conflictLook', { n: theirs.version })}
              </Link>
            }
            action={t('connections.conflictOver')}
            busy={busy}
            onAction={() => void save(theirs.version)}
          />
        )}
        <WhereSection stored={stored} />
        <WhoSection stored={stored} />
        <TLSSection stored={stored} />
      </div>
      <FormFoot
        isNew={!stored}
        busy={busy}
        cancel={
          stored ? (
            <LinkButton to="/settings/integrations/connections/$connectionId" params={{ connectionId: stored.id }}>
              {t('action.cancel')}
            </LinkButton>
          ) : (
            <LinkButton to="/settings/integrations/connections">{t('action.cancel')}</LinkButton>
          )
        }
      >
        {stored && <span className="muted small">{t('connections.saveHelp')}</span>}
      </FormFoot>
    </Form>
  )
}

interface Part {
  stored: Connection | undefined
}

function WhereSection({ stored }: Part) {
  const { t } = useTranslation()
  const form = Form.useFormInstance<ConnectionFields>()
  const broker: Broker = Form.useWatch('broker', form) ?? 'nats'
  const required = { required: true, whitespace: true, message: t('field.required') }
  return (
    <section className="card" aria-label={t('connections.where')}>
      <h2>{t('connections.where')}</h2>
      <div className="form-fields">
        <Form.Item name="name" label={t('field.name')} rules={[required]}>
          <Input maxLength={128} autoComplete="off" spellCheck={false} />
        </Form.Item>
        <Form.Item name="broker" label={t('connections.broker')} extra={stored ? undefined : t('connections.brokerHelp')}>
          <Select
            disabled={Boolean(stored)}
            options={BROKERS.map((value) => ({ value, label: t(`connections.brokers.${value}`) }))}
            onChange={(value: Broker) => form.setFieldValue('mechanism', MECHANISMS[value][0])}
          />
        </Form.Item>
        {broker === 'rabbitmq' && (
          <Form.Item name="virtualHost" label={t('connections.virtualHost')}>
            <Input maxLength={127} autoComplete="off" spellCheck={false} />
          </Form.Item>
        )}
        {broker === 'redis' && (
          <>
            <Form.Item name="database" label={t('connections.database')}>
              <InputNumber min={0} max={65_536} precision={0} placeholder="0" className="full" />
            </Form.Item>
            <Form.Item name="sentinelMaster" label={t('connections.sentinelMaster')} extra={t('connections.sentinelHelp')}>
              <Input maxLength={128} autoComplete="off" spellCheck={false} />
            </Form.Item>
          </>
        )}
        <Form.Item className="wide" name="addresses" label={t('connections.addresses')} rules={[required]} extra={t('connections.addressesHelp')}>
          <Input.TextArea className="mono" autoSize={{ minRows: 1, maxRows: 16 }} spellCheck={false} placeholder={EXAMPLE_ADDRESS[broker]} />
        </Form.Item>
        <Form.Item className="wide" name="description" label={t('connections.description')}>
          <Input.TextArea maxLength={2000} autoSize={{ minRows: 1, maxRows: 5 }} />
        </Form.Item>
      </div>
    </section>
  )
}

function WhoSection({ stored }: Part) {
  const { t } = useTranslation()
  const form = Form.useFormInstance<ConnectionFields>()
  const broker: Broker = Form.useWatch('broker', form) ?? 'nats'
  const mechanism = Form.useWatch('mechanism', form)
  const none: boolean = Form.useWatch('noPassword', form) ?? false
  const placeholder = stored?.secrets.password ? t('connections.kept') : undefined
  return (
    <section className="card" aria-label={t('connections.who')}>
      <h2>{t('connections.who')}</h2>
      <div className="form-fields">
        <Form.Item name="mechanism" label={t('connections.mechanism')}>
          <Select options={MECHANISMS[broker].map((value) => ({ value, label: t(`connections.mechanisms.${value}`) }))} />
        </Form.Item>
        {mechanism !== 'credentials' && mechanism !== 'external' && (
          <Form.Item name="username" label={t('connections.username')}>
            <Input maxLength={256} autoComplete="off" spellCheck={false} />
          </Form.Item>
        )}
        {mechanism === 'credentials' && (
          <Form.Item className="wide" name="password" label={t('connections.credentials')} extra={t('connections.passwordHelp')}>
            <Input.TextArea className="mono" rows={4} maxLength={8192} autoComplete="off" spellCheck={false} disabled={none} placeholder={placeholder} />
          </Form.Item>
        )}
        {mechanism !== 'credentials' && mechanism !== 'external' && (
          <Form.Item name="password" label={t('connections.password')} extra={t(broker === 'nats' ? 'connections.passwordToken' : 'connections.passwordHelp')}>
            <Input.Password maxLength={8192} autoComplete="new-password" disabled={none} placeholder={placeholder} />
          </Form.Item>
        )}
        {stored?.secrets.password && mechanism !== 'external' && (
          <Form.Item name="noPassword" valuePropName="checked" label={t(mechanism === 'credentials' ? 'connections.credentials' : 'connections.password')}>
            <Checkbox>{t('connections.remove')}</Checkbox>
          </Form.Item>
        )}
      </div>
    </section>
  )
}

function TLSSection({ stored }: Part) {
  const { t } = useTranslation()
  const form = Form.useFormInstance<ConnectionFields>()
  const enabled: boolean = Form.useWatch(['tls', 'enabled'], form) ?? false
  const none: boolean = Form.useWatch('noClientKey', form) ?? false
  return (
    <section className="card" aria-label={t('connections.tls')}>
      <h2>{t('connections.tls')}</h2>
      <Form.Item name={['tls', 'enabled']} valuePropName="checked">
        <Checkbox>{t('connections.tlsOn')}</Checkbox>
      </Form.Item>
      {enabled && (
        <div className="form-fields">
          <Form.Item name={['tls', 'serverName']} label={t('connections.serverName')} extra={t('connections.serverNameHelp')}>
            <Input maxLength={253} autoComplete="off" spellCheck={false} />
          </Form.Item>
          <Form.Item className="wide" name={['tls', 'authorities']} label={t('connections.authorities')} extra={t('connections.authoritiesHelp')}>
            <Input.TextArea className="mono" autoSize={{ minRows: 2, maxRows: 8 }} spellCheck={false} />
          </Form.Item>
          <Form.Item className="wide" name={['tls', 'certificate']} label={t('connections.certificate')} extra={t('connections.certificateHelp')}>
            <Input.TextArea className="mono" autoSize={{ minRows: 2, maxRows: 8 }} spellCheck={false} />
          </Form.Item>
          <Form.Item className="wide" name="clientKey" label={t('connections.clientKey')} extra={t('connections.passwordHelp')}>
            <Input.TextArea
              className="mono"
              autoSize={{ minRows: 2, maxRows: 8 }}
              autoComplete="off"
              spellCheck={false}
              disabled={none}
              placeholder={stored?.secrets.clientKey ? t('connections.kept') : undefined}
            />
          </Form.Item>
          {stored?.secrets.clientKey && (
            <Form.Item name="noClientKey" valuePropName="checked">
              <Checkbox>{`${t('connections.remove')}: ${t('connections.clientKey')}`}</Checkbox>
            </Form.Item>
          )}
        </div>
      )}
    </section>
  )
}
