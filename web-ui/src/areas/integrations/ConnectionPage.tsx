// One connection to a broker: where it leads, and a message to try it with.
import { DeleteOutlined, EditOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Alert, Checkbox, Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { connectionApi, connectionQueries, refreshConnections } from './connections'
import { queryClient } from '../../api/queries'
import type { Connection, MessageTestResult } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { ByWhom } from '../../ui/ByWhom'
import { Changes } from '../../ui/Changes'
import { complainAt } from '../../ui/complain'
import { Fact } from '../../ui/Fact'
import { useCan, useShowError } from '../../ui/hooks'
import { LinkButton } from '../../ui/LinkButton'
import { Page } from '../../ui/Page'
import { ErrorState, PageSkeleton } from '../../ui/States'
import { useDanger } from '../../ui/useDanger'
import { TARGETS, type TargetFields } from './connectionForm'

export function ConnectionPage() {
  const { t } = useTranslation()
  const { connectionId } = useParams({ from: '/app/settings/integrations/connections/$connectionId' })
  const connection = useQuery(connectionQueries.one(connectionId))
  const canEdit = useCan('editor')
  if (connection.error && !connection.data) return <ErrorState error={connection.error} onRetry={() => void connection.refetch()} />
  if (!connection.data) return <PageSkeleton />
  const { data } = connection
  return (
    <Page title={data.name} crumbs={<Link to="/settings/integrations/connections">{t('connections.title')}</Link>} sub={data.spec.description} actions={canEdit && <Actions connection={data} />}>
      <div className="stack">
        <section className="card" aria-label={t('connections.where')}>
          <Facts connection={data} />
        </section>
        {canEdit && <TestCard key={data.version} connection={data} />}
        <Changes kind="connection" object={data.id} />
      </div>
    </Page>
  )
}

function Facts({ connection: one }: { connection: Connection }) {
  const { t } = useTranslation()
  const secret = (has: boolean) => t(has ? 'connections.has' : 'connections.hasNot')
  const { spec } = one
  const { tls } = spec
  return (
    <dl className="facts">
      <Fact label={t('connections.broker')}>{t(`connections.brokers.${spec.broker}`)}</Fact>
      <Fact label={t('connections.addresses')}>
        <span className="mono">{spec.addresses.join(', ')}</span>
      </Fact>
      {spec.virtualHost && <Fact label={t('connections.virtualHost')}>{spec.virtualHost}</Fact>}
      {spec.broker === 'redis' && <Fact label={t('connections.database')}>{spec.database ?? 0}</Fact>}
      {spec.sentinelMaster && <Fact label={t('connections.sentinelMaster')}>{spec.sentinelMaster}</Fact>}
      <Fact label={t('connections.mechanism')}>{t(`connections.mechanisms.${spec.mechanism ?? 'password'}`)}</Fact>
      {spec.username && <Fact label={t('connections.username')}>{spec.username}</Fact>}
      <Fact label={t(spec.mechanism === 'credentials' ? 'connections.credentials' : 'connections.password')}>{secret(Boolean(one.secrets.password))}</Fact>
      <Fact label={t('connections.tls')}>{t(tls?.enabled ? 'connections.tlsOn' : 'connections.tlsOff')}</Fact>
      {tls?.serverName && <Fact label={t('connections.serverName')}>{tls.serverName}</Fact>}
      {tls?.certificate && <Fact label={t('connections.clientKey')}>{secret(Boolean(one.secrets.clientKey))}</Fact>}
      <Fact label={t('connections.version')}>
        <span className="num">{one.version}</span>
      </Fact>
      <Fact label={t('field.updated')}>
        <ByWhom who={one.updatedBy} at={one.updatedAt} />
      </Fact>
    </dl>
  )
}

function Actions({ connection: { id, name } }: { connection: Connection }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const navigate = useNavigate()
  const remove = () =>
    danger({
      title: t('connections.deleteTitle', { name }),
      content: t('connections.deleteHelp'),
      action: t('connections.delete'),
      work: async () => {
        await connectionApi.deleteConnection(id)
        await navigate({ to: '/settings/integrations/connections' })
        queryClient.removeQueries({ queryKey: ['connection', id] })
      },
      done: t('connections.deleted', { name }),
      after: refreshConnections,
    })
  return (
    <>
      <LinkButton to="/settings/integrations/connections/$connectionId/edit" params={{ connectionId: id }} icon={<EditOutlined />}>
        {t('action.edit')}
      </LinkButton>
      <ActionButton danger icon={<DeleteOutlined />} onClick={remove}>
        {t('connections.delete')}
      </ActionButton>
    </>
  )
}

interface Fields {
  target: TargetFields
  body: string
}

function TestCard({ connection: { id, spec: { broker } } }: { connection: Connection }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<Fields>()
  const [busy, setBusy] = useState(false)
  const [result, setResult] = useState<MessageTestResult>()
  const send = async ({ target, body }: Fields) => {
    setBusy(true)
    setResult(undefined)
    try {
      setResult(await connectionApi.testConnection(id, { target, body }))
    } catch (err) {
      if (!complainAt(form, err)) showError(err)
    } finally {
      setBusy(false)
    }
  }
  const label = (name: (typeof TARGETS)[typeof broker][number]['name']) => t(name === 'stream' && broker === 'nats' ? 'connections.streamOptional' : `connections.${name}`)
  return (
    <section className="card" aria-label={t('connections.test')}>
      <h2>{t('connections.test')}</h2>
      <p className="muted">{t('connections.testHelp')}</p>
      <Form form={form} layout="vertical" className="above-3" initialValues={{ body: '{"test":true}', ...(broker === 'redis' ? { target: { create: false } } : {}) }} onFinish={(fields) => void send(fields)}>
        <div className="form-fields">
          {TARGETS[broker].map(({ name, optional }) => (
            <Form.Item
              key={name}
              name={['target', name]}
              label={label(name)}
              extra={name === 'exchange' ? t('connections.exchangeHelp') : undefined}
              rules={optional ? [] : [{ required: true, whitespace: true, message: t('field.required') }]}
            >
              <Input className="mono" maxLength={512} autoComplete="off" spellCheck={false} />
            </Form.Item>
          ))}
          <Form.Item className="wide" name="body" label={t('connections.testBody')}>
            <Input.TextArea className="mono" autoSize={{ minRows: 1, maxRows: 8 }} spellCheck={false} />
          </Form.Item>
          {broker === 'redis' && (
            <Form.Item className="wide" name={['target', 'create']} valuePropName="checked">
              <Checkbox>{t('connections.makeStream')}</Checkbox>
            </Form.Item>
          )}
        </div>
        <ActionButton type="primary" htmlType="submit" loading={busy}>
          {t('connections.testSend')}
        </ActionButton>
      </Form>
      <div role="status" className={result ? 'above-4' : undefined}>
        {result && <Result result={result} />}
      </div>
    </section>
  )
}

function Result({ result }: { result: MessageTestResult }) {
  const { t } = useTranslation()
  if (result.delivered) return <Alert type="success" showIcon title={t('connections.testDelivered', { ms: result.durationMs })} description={t('connections.testId', { id: result.messageId })} />
  return (
    <Alert
      type="error"
      showIcon
      title={t('connections.testFailed')}
      description={
        <>
          <p className="any-wrap">{result.message}</p>
          <p>{t(result.permanent ? 'connections.testPermanent' : 'connections.testAgain')}</p>
        </>
      }
    />
  )
}
