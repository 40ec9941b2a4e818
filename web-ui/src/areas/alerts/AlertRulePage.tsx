// Making and changing a rule of alerts.
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Checkbox, Form, Input, InputNumber, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { alertApi, alertQueries, refreshAlerts } from './alerts'
import { readOnce } from '../../api/queries'
import type { AlertRule } from '../../api/types'
import { AlertMatchFields, matchOf } from './AlertMatchFields'
import { ALERT_KINDS, MatchText } from './AlertWords'
import { ChannelsSelect } from './ChannelsSelect'
import { EditPage, FormFoot } from '../../ui/EditPage'
import { Fact } from '../../ui/Fact'
import { LinkButton } from '../../ui/LinkButton'
import { Overwrite } from '../../ui/Overwrite'
import { Page } from '../../ui/Page'
import { QuietHoursFields, quietFieldsOf, quietHoursOf } from './QuietHoursFields'
import { ConditionText, ToldText } from './RuleText'
import { useVersionedForm } from '../../ui/useVersionedForm'
import { anyKind, CONDITIONS, looks, ruleFieldsOf, ruleSpecOf, SEVERITIES, type ConditionKind } from './alertForm'
import type { QuietFields } from './QuietHoursFields'
import type { RuleFields } from './alertForm'

type Fields = RuleFields & QuietFields

const crumbs = (title: string) => <Link to="/settings/notifications/rules">{title}</Link>

export function AlertRuleNewPage() {
  const { t } = useTranslation()
  return (
    <Page title={t('alerts.rules.createTitle')} crumbs={crumbs(t('alerts.notifications.title'))}>
      <RuleForm />
    </Page>
  )
}

export function AlertRuleEditPage() {
  const { t } = useTranslation()
  const { ruleId } = useParams({ from: '/app/settings/notifications/rules/$ruleId' })
  return (
    <EditPage stored={useQuery(readOnce(alertQueries.rule(ruleId)))} title={({ name }) => t('alerts.rules.editTitle', { name })} crumbs={() => crumbs(t('alerts.notifications.title'))}>
      {(rule) => <RuleForm key={rule.version} stored={rule} />}
    </EditPage>
  )
}

const specOf = (fields: Fields) => ({ ...ruleSpecOf(fields), match: looks(fields.condition.kind) ? { ...matchOf(fields.match), kinds: undefined } : matchOf(fields.match), ...(fields.mute ? {} : quietHoursOf(fields)) })

function RuleForm({ stored }: { stored?: AlertRule }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { form, props, busy, theirs, save } = useVersionedForm<AlertRule, Fields>({
    stored,
    initial: () => ({ ...ruleFieldsOf(stored), ...quietFieldsOf(stored?.spec.quietHours) }),
    write: (fields, version) => {
      const body = { name: fields.name.trim(), ...(stored?.labels ? { labels: stored.labels } : {}), spec: specOf(fields) }
      return stored ? alertApi.updateRule(stored.id, version, body) : alertApi.createRule(body)
    },
    read: (id) => alertApi.rule(id),
    done: () => {
      refreshAlerts()
      void navigate({ to: '/settings/notifications/rules' })
    },
  })
  const kind: ConditionKind = Form.useWatch(['condition', 'kind'], form) ?? stored?.spec.condition.kind ?? 'events'
  const mute: boolean = Form.useWatch('mute', form) ?? stored?.spec.mute ?? false
  const required = { required: true, whitespace: true, message: t('field.required') }
  return (
    <Form {...props}>
      <div className="form-grid">
        <div>
          <div className="stack">
          {theirs && (
            <Overwrite
              title={t('alerts.rules.conflict')}
              help={t('connections.conflictHelp', { n: theirs.version })}
              look={
                <Link to="/settings/notifications/rules/$ruleId" params={{ ruleId: theirs.id }} target="_blank" rel="noreferrer">
                  {t('connections.conflictLook', { n: theirs.version })}
                </Link>
              }
              action={t('connections.conflictOver')}
              busy={busy}
              onAction={() => void save(theirs.version)}
            />
          )}
          <section className="card" aria-label={t('alerts.rules.one')}>
            <div className="form-fields">
              <Form.Item name="name" label={t('field.name')} rules={[required]}>
                <Input maxLength={128} autoComplete="off" />
              </Form.Item>
              <Form.Item name="position" label={t('alerts.rules.position')} extra={t('alerts.rules.positionHelp')}>
                <InputNumber min={0} max={1_000_000} precision={0} className="full" />
              </Form.Item>
              <Form.Item name="severity" label={t('alerts.rules.severity')} extra={t('alerts.rules.severityHelp')}>
                <Select options={SEVERITIES.map((value) => ({ value, label: t(`alerts.rules.severities.${value}`) }))} />
              </Form.Item>
              <Form.Item className="wide" name="enabled" valuePropName="checked">
                <Checkbox>{t('alerts.rules.enabled')}</Checkbox>
              </Form.Item>
              <Form.Item className="wide" name="description" label={t('field.description')}>
                <Input.TextArea maxLength={4096} autoSize={{ minRows: 1, maxRows: 5 }} />
              </Form.Item>
            </div>
          </section>
          <section className="card" aria-label={t('alerts.rules.condition')}>
            <h2>{t('alerts.rules.condition')}</h2>
            <div className="form-fields">
              <Form.Item name={['condition', 'kind']} label={t('alerts.rules.when')}>
                <Select options={CONDITIONS.map((value) => ({ value, label: t(`alerts.rules.conditions.${value}`) }))} />
              </Form.Item>
              {kind === 'failures' && (
                <>
                  <Form.Item name={['condition', 'failures']} label={t('alerts.rules.failures')}>
                    <InputNumber min={1} max={50} precision={0} className="full" />
                  </Form.Item>
                  <Form.Item name={['condition', 'of']} label={t('alerts.rules.of')}>
                    <InputNumber min={1} max={50} precision={0} className="full" />
                  </Form.Item>
                </>
              )}
              {kind === 'keyword' && (
                <Form.Item name={['condition', 'keyword']} label={t('alerts.rules.keyword')} rules={[required]}>
                  <Input maxLength={256} autoComplete="off" />
                </Form.Item>
              )}
              {looks(kind) && (
                <Form.Item name={['condition', 'after']} label={t('alerts.rules.after')} extra={t('alerts.rules.afterHelp')} rules={[required]}>
                  <Input className="mono" maxLength={32} autoComplete="off" spellCheck={false} />
                </Form.Item>
              )}
              {kind === 'long' && (
                <Form.Item name={['condition', 'factor']} label={t('alerts.rules.factor')} extra={t('alerts.rules.factorHelp')}>
                  <InputNumber min={1} max={100} className="full" />
                </Form.Item>
              )}
            </div>
          </section>
          <section className="card" aria-label={t('alerts.rules.match')}>
            <h2>{t('alerts.rules.match')}</h2>
            <AlertMatchFields
              by="name"
              kinds={!looks(kind)}
              of={kind === 'failures' ? ALERT_KINDS.filter((one) => one !== 'run_succeeded') : ALERT_KINDS}
              kindsHelp={kind === 'failures' ? undefined : t('alerts.rules.kindsHelp')}
            />
          </section>
          <section className="card" aria-label={t('alerts.rules.who')}>
            <h2>{t('alerts.rules.who')}</h2>
            <Form.Item name="mute" valuePropName="checked">
              <Checkbox>{t('alerts.rules.mute')}</Checkbox>
            </Form.Item>
            {!mute && (
              <>
                <div className="form-fields">
                  <Form.Item className="wide" name="channels" label={t('alerts.rules.channels')} extra={t('alerts.rules.channelsHelp')}>
                    <ChannelsSelect by="name" />
                  </Form.Item>
                  <Form.Item name="repeat" label={t('alerts.rules.repeat')} extra={t('alerts.rules.repeatHelp')}>
                    <Input className="mono" maxLength={32} autoComplete="off" spellCheck={false} />
                  </Form.Item>
                  <Form.Item name="escalateAfter" label={t('alerts.rules.escalateAfter')} extra={t('alerts.rules.escalateAfterHelp')}>
                    <Input className="mono" maxLength={32} autoComplete="off" spellCheck={false} />
                  </Form.Item>
                  <Form.Item name="escalateTo" label={t('alerts.rules.escalateTo')}>
                    <ChannelsSelect by="name" />
                  </Form.Item>
                </div>
                <QuietHoursFields help={t('alerts.quiet.rule')} />
              </>
            )}
          </section>
          </div>
        </div>
        <aside className="form-rail">
          <RulePreview />
        </aside>
      </div>
      <FormFoot isNew={!stored} busy={busy} cancel={<LinkButton to="/settings/notifications/rules">{t('action.cancel')}</LinkButton>} />
    </Form>
  )
}

/** What stands in the form, in one sentence. */
function RulePreview() {
  const { t } = useTranslation()
  const fields: Fields | undefined = Form.useWatch([])
  if (!fields?.condition) return null
  const spec = specOf({ ...fields, description: fields.description ?? '', repeat: fields.repeat ?? '', escalateAfter: fields.escalateAfter ?? '' })
  return (
    <section className="card" aria-label={t('alerts.rules.preview')}>
      <h2>{t('alerts.rules.preview')}</h2>
      <dl className="stack gap-2">
        <Fact label={t('alerts.rules.match')}>
          <MatchText match={spec.match} anyKind={anyKind(spec, t)} />
        </Fact>
        <Fact label={t('alerts.rules.when')}>
          <ConditionText condition={spec.condition} />
        </Fact>
        <Fact label={t('alerts.rules.who')}>
          <ToldText rule={spec} />
        </Fact>
      </dl>
    </section>
  )
}
