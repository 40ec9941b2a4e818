// The maintenance switch: of the cluster and the tenant on one page, of an executor on its own.
import { ToolOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Checkbox, Form, Input, Radio } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { maintenanceApi, maintenanceQueries, refreshMaintenance, type Scope } from './maintenance'
import type { Maintenance, MaintenanceRequest, Ref } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { ByWhom } from '../../ui/ByWhom'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { EndFields, endOf, type EndFieldsValue } from '../../ui/EndFields'
import { useCan, useSession, useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { RelativeTime } from '../../ui/TimeText'
import { useDanger } from '../../ui/useDanger'

const MODES = ['wait', 'skip', 'continue'] as const

/** With an executor: of this one alone. */
export function MaintenanceCard({ executor }: { executor?: Ref }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const session = useSession()
  const admin = useCan('admin')
  const platform = session?.user.platformAdmin ?? false
  const [past, setPast] = useState(false)
  const [starting, setStarting] = useState<Scope>()
  const all = useQuery(maintenanceQueries.all(past))
  const rows = all.data?.items.filter((one) => !executor || (one.kind === 'executor' && one.subject?.id === executor.id))
  const title = (one: Maintenance) => t(`maintenance.${one.kind}`, { name: one.subject?.name })
  const scopeOf = (one: Maintenance): Scope => (one.kind === 'executor' ? { executor: one.subject?.id ?? '' } : one.kind)
  const mayEnd = (one: Maintenance) => one.active && (one.kind === 'cluster' ? platform : admin)
  const end = (one: Maintenance) =>
    danger({ title: t('maintenance.endTitle', { what: title(one) }), content: t('maintenance.endHelp'), action: t('maintenance.end'), work: () => maintenanceApi.end(scopeOf(one)), done: t('maintenance.ended'), after: refreshMaintenance })
  const on = (scope: Scope) => rows?.some((one) => one.active && JSON.stringify(scopeOf(one)) === JSON.stringify(scope))
  const columns: Column<Maintenance>[] = [
    { key: 'what', title: t('maintenance.what'), kind: 'title', render: (one) => <strong>{title(one)}</strong> },
    { key: 'mode', title: t('maintenance.mode'), render: (one) => t(`maintenance.${one.mode}`) },
    { key: 'reason', title: t('field.reason'), render: (one) => one.reason || <span className="muted">—</span> },
    { key: 'by', title: t('maintenance.startedBy'), render: (one) => <ByWhom who={one.by} at={one.since} /> },
    {
      key: 'until',
      title: t('maintenance.ends'),
      render: (one) => (
        <span>
          <RelativeTime at={one.until} fallback={t('maintenance.open')} /> {one.endedBy && <span className="muted small">· {one.endedBy}</span>}
        </span>
      ),
    },
  ]
  if (admin) {
    columns.push({
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) =>
        mayEnd(one) && (
          <ActionButton size="small" onClick={() => end(one)} aria-label={`${t('maintenance.end')}: ${title(one)}`}>
            {t('maintenance.end')}
          </ActionButton>
        ),
    })
  }
  const offers: [Scope, string, boolean][] = executor
    ? [[{ executor: executor.id }, t('maintenance.start'), admin]]
    : [
        ['tenant', t('maintenance.startTenant'), admin],
        ['cluster', t('maintenance.startCluster'), platform],
      ]
  return (
    <section className="card flush" aria-label={t('maintenance.title')}>
      <div className="card-head">
        <div className="grow">
          <h2>{t('maintenance.title')}</h2>
          <p className="muted small">{t('maintenance.help')}</p>
        </div>
        <Checkbox checked={past} onChange={(event) => setPast(event.target.checked)}>
          {t('maintenance.showEnded')}
        </Checkbox>
        {offers.map(
          ([scope, label, may]) =>
            may &&
            rows &&
            !on(scope) && (
              <ActionButton key={label} icon={<ToolOutlined />} onClick={() => setStarting(scope)}>
                {label}
              </ActionButton>
            ),
        )}
      </div>
      <ResourceTable label={t('maintenance.title')} columns={columns} rows={rows} rowKey={(one) => one.id} error={all.error} onRetry={() => void all.refetch()} empty={<p className="muted empty-line">{t('maintenance.none')}</p>} />
      {starting && (
        <StartDialog
          scope={starting}
          what={starting === 'cluster' ? t('maintenance.cluster') : starting === 'tenant' ? t('maintenance.tenant', { name: session?.tenant.name }) : t('maintenance.executor', { name: executor?.name })}
          onClose={() => setStarting(undefined)}
        />
      )}
    </section>
  )
}

interface Fields extends EndFieldsValue {
  mode: MaintenanceRequest['mode']
  reason?: string
}

function StartDialog({ scope, what, onClose }: { scope: Scope; what: string; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<Fields>()
  const [busy, setBusy] = useState(false)
  const submit = async (fields: Fields) => {
    setBusy(true)
    try {
      const until = endOf(fields)
      await maintenanceApi.start(scope, { mode: fields.mode, reason: fields.reason?.trim() ?? '', ...(until ? { until } : {}) })
      message.success(t('maintenance.started'))
      refreshMaintenance()
      onClose()
    } catch (err) {
      if (!complainAt(form, err, ([first = '']) => [first === 'until' && form.getFieldValue('lasts') !== 'at' ? 'lasts' : first])) showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={what} okText={t('maintenance.start')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy, danger: true }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ mode: 'wait', lasts: 'open' }} onFinish={(fields) => void submit(fields)}>
        <Form.Item name="mode" label={t('maintenance.mode')}>
          <Radio.Group>
            <div className="stack gap-2">
              {MODES.map((mode) => (
                <Radio key={mode} value={mode}>
                  {t(`maintenance.${mode}`)}
                  <div className="muted small">{t(`maintenance.${mode}Help`)}</div>
                </Radio>
              ))}
            </div>
          </Radio.Group>
        </Form.Item>
        <EndFields open={t('maintenance.open')} />
        <Form.Item name="reason" label={t('field.reason')} extra={t('maintenance.reasonHelp')}>
          <Input maxLength={500} autoComplete="off" />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
