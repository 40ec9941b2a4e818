// The fields of a job in three sections: what runs, when, and how it behaves.
import { Button, Checkbox, Form, Input, InputNumber, Select } from 'antd'
import type { Rule } from 'antd/es/form'
import { lazy, Suspense, useMemo, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { loadChunk } from '../../../lib/chunk'
import { parseDuration } from '../../../lib/duration'
import { scheduleOf, scriptLanguage, splitLabel, takesCalendars, type JobFields, type ScheduleFields } from './jobForm'
import { allZones } from '../../../lib/time'
import { CalendarFields } from './CalendarFields'
import { CallbackField } from './CallbackField'
import { ExecutorSelect } from '../../../ui/ExecutorSelect'
import { HandlerInput, SchemaHint, useCatalogue } from './HandlerFields'
import { InputEditor } from '../../../ui/input/InputEditor'
import { parseInput } from '../../../ui/input/JsonEditor'
import { NobodyTold } from './NobodyTold'
import { RoutingFields, SendFields } from './RoutingFields'
import { CronFault, useCronFault } from '../SchedulePreview'
import { ScriptFields } from './ScriptFields'
import type { Refused } from '../../../ui/input/SchemaForm'
import { ShardFields } from './ShardFields'
import { Switcher } from '../../../ui/Switcher'

const WallPicker = lazy(() => loadChunk(() => import('../../../ui/WallPicker')))

const MAX_NAME = 128
const MAX_ATTEMPTS = 100
const EMAIL = /^[^\s@]+@[^\s@]+$/

function useRules() {
  const { t } = useTranslation()
  return useMemo(() => {
    const check = (ok: (value: string) => boolean, message: string | ((value: string) => string)): Rule => ({
      validator: (_, value: string | undefined) => (!value || ok(value) ? Promise.resolve() : Promise.reject(new Error(typeof message === 'string' ? message : message(value)))),
    })
    const each = (ok: (value: string) => boolean, message: (value: string) => string): Rule => ({
      validator: (_, values: string[] | undefined) => {
        const bad = values?.find((value) => !ok(value))
        return bad === undefined ? Promise.resolve() : Promise.reject(new Error(message(bad)))
      },
    })
    const required: Rule = { required: true, whitespace: true, message: t('field.required') }
    return {
      required,
      name: check((value) => [...value.trim()].length <= MAX_NAME, t('jobs.form.tooLong', { max: MAX_NAME })),
      attempts: { type: 'integer', min: 1, max: MAX_ATTEMPTS, message: t('jobs.form.attemptsBad', { max: MAX_ATTEMPTS }) } satisfies Rule,
      needed: { required: true, message: t('field.required') } satisfies Rule,
      duration: check((value) => parseDuration(value) >= 0, t('jobs.form.durationBad')),
      url: check((value) => /^https?:\/\/\S+$/.test(value), t('jobs.form.urlBad')),
      email: check((value) => EMAIL.test(value), (value) => t('jobs.form.emailBad', { value })),
      emails: each((value) => EMAIL.test(value), (value) => t('jobs.form.emailBad', { value })),
      labels: each((value) => splitLabel(value) !== undefined, () => t('jobs.form.labelBad')),
      json: {
        validator: (_: unknown, value: string) => {
          const parsed = parseInput(value ?? '')
          return parsed.ok ? Promise.resolve() : Promise.reject(new Error(t('jobs.form.inputBad', { message: parsed.message })))
        },
      } satisfies Rule,
    }
  }, [t])
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

/** refused: the input that the server did not take. */
export function WhatSection({ refused }: { refused: Refused | undefined }) {
  const { t } = useTranslation()
  const rules = useRules()
  const handlerName = Form.useWatch<string | undefined>('handler')
  const { executorId, executor, handlers } = useCatalogue()
  const handler = handlers.find((one) => one.name === handlerName)
  const unknown = Boolean(handlerName) && executor && !handler
  return (
    <Section title={t('jobs.form.what')}>
      <div className="form-fields">
        <Form.Item name="name" label={t('jobs.form.name')} rules={[rules.required, rules.name]} extra={t('jobs.form.nameHelp')}>
          <Input autoComplete="off" spellCheck={false} />
        </Form.Item>
        <Form.Item name="executorId" label={t('jobs.form.executor')} rules={[rules.needed]}>
          <ExecutorSelect label={t('jobs.form.executor')} valueName={executor?.id === executorId ? executor?.name : undefined} />
        </Form.Item>
        <Form.Item name="handler" label={t('jobs.form.handler')} rules={[rules.required]} extra={unknown ? <span className="st-timeout">{t('jobs.form.handlerUnknown')}</span> : t('jobs.form.handlerHelp')}>
          <HandlerInput />
        </Form.Item>
        {scriptLanguage(handlerName) && <ScriptFields language={scriptLanguage(handlerName) ?? ''} />}
        <Form.Item name={['owner', 'name']} label={t('jobs.form.ownerName')}>
          <Input maxLength={128} autoComplete="off" />
        </Form.Item>
        <Form.Item name={['owner', 'email']} label={t('jobs.form.ownerEmail')} rules={[rules.email]}>
          <Input maxLength={254} inputMode="email" autoComplete="off" />
        </Form.Item>
        <Form.Item name="labels" label={t('jobs.form.labels')} rules={[rules.labels]} extra={t('jobs.form.labelsHelp')}>
          <Select mode="tags" open={false} suffixIcon={null} tokenSeparators={[',', ' ']} />
        </Form.Item>
        <Form.Item className="wide" name="description" label={t('jobs.form.description')}>
          <Input.TextArea maxLength={2000} autoSize={{ minRows: 1, maxRows: 5 }} />
        </Form.Item>
        <div className="wide">
          <Form.Item name="inputText" rules={[rules.json]} validateTrigger={[]} noStyle>
            <InputEditor label={t('jobs.form.input')} schema={handler?.inputSchema} refused={refused} />
          </Form.Item>
          {handler && <SchemaHint handler={handler} />}
        </div>
      </div>
    </Section>
  )
}

export function WhenSection() {
  const { t } = useTranslation()
  const rules = useRules()
  const form = Form.useFormInstance<JobFields>()
  const schedule = Form.useWatch<ScheduleFields | undefined>('schedule')
  const kind = schedule?.kind ?? 'cron'
  const { expr, fault } = useCronFault(scheduleOf(schedule))
  const zones = useMemo(() => allZones().map((zone) => ({ value: zone, label: zone })), [])
  const [bounded, setBounded] = useState(() => Boolean(form.getFieldValue(['schedule', 'startAt']) ?? form.getFieldValue(['schedule', 'endAt'])))
  return (
    <Section title={t('jobs.form.when')}>
      <Form.Item name={['schedule', 'kind']} label={t('jobs.form.kind')}>
        <Switcher
          label={t('jobs.form.kind')}
          options={[
            { value: 'cron', label: t('jobs.form.kindCron') },
            { value: 'fixed_rate', label: t('jobs.form.kindRate') },
            { value: 'fixed_delay', label: t('jobs.form.kindDelay') },
            { value: 'daily_window', label: t('jobs.form.kindWindow') },
            { value: 'instants', label: t('jobs.form.kindInstants') },
            { value: 'once', label: t('jobs.form.kindOnce') },
            { value: 'none', label: t('jobs.form.kindNone') },
          ]}
        />
      </Form.Item>
      <div className="form-fields">
        {kind === 'cron' && (
          <>
            <Form.Item
              name={['schedule', 'expr']}
              label={t('jobs.form.expr')}
              rules={[rules.required]}
              validateStatus={fault ? 'error' : undefined}
              extra={fault ? <CronFault expr={expr} item={fault} /> : t('jobs.form.exprHelp')}
            >
              <Input className="mono" autoComplete="off" spellCheck={false} maxLength={256} placeholder="0 0 2 * * *" />
            </Form.Item>
            <Form.Item name={['schedule', 'dialect']} label={t('jobs.form.dialect')}>
              <Select
                options={[
                  { value: 'auto', label: t('jobs.form.dialectAuto') },
                  { value: 'standard', label: t('jobs.form.dialectStandard') },
                  { value: 'seconds', label: t('jobs.form.dialectSeconds') },
                  { value: 'quartz', label: t('jobs.form.dialectQuartz') },
                ]}
              />
            </Form.Item>
          </>
        )}
        {(kind === 'fixed_rate' || kind === 'fixed_delay' || kind === 'daily_window') && (
          <Form.Item
            name={['schedule', 'every']}
            label={t('jobs.form.every')}
            rules={[rules.required, rules.duration]}
            extra={t(kind === 'fixed_delay' ? 'jobs.form.everyDelayHelp' : 'jobs.form.everyHelp')}
          >
            <Input className="mono" autoComplete="off" placeholder="30s" />
          </Form.Item>
        )}
        {kind === 'daily_window' && (
          <>
            <Form.Item name={['schedule', 'windowFrom']} label={t('jobs.form.windowFrom')} rules={[rules.required]} extra={t('jobs.form.windowHelp')}>
              <Input className="mono" autoComplete="off" placeholder="08:00" maxLength={8} />
            </Form.Item>
            <Form.Item name={['schedule', 'windowTo']} label={t('jobs.form.windowTo')} rules={[rules.required]}>
              <Input className="mono" autoComplete="off" placeholder="18:00" maxLength={8} />
            </Form.Item>
          </>
        )}
        {kind === 'instants' && (
          <Form.Item name={['schedule', 'instants']} label={t('jobs.form.instants')} rules={[rules.needed]} extra={t('jobs.form.instantsHelp')}>
            <Select mode="tags" open={false} suffixIcon={null} tokenSeparators={[',', ' ', '\n']} placeholder="2026-12-01T08:00:00+08:00" />
          </Form.Item>
        )}
        {kind === 'once' && (
          <Suspense fallback={<span className="skeleton" />}>
            <Form.Item name={['schedule', 'at']} label={t('jobs.form.at')} rules={[rules.needed]}>
              <WallPicker />
            </Form.Item>
          </Suspense>
        )}
        <Form.Item name={['schedule', 'zone']} label={t('jobs.form.zone')} rules={[rules.needed]}>
          <Select showSearch options={zones} />
        </Form.Item>
        {kind !== 'none' && (
          <Form.Item name={['schedule', 'jitter']} label={t('jobs.form.jitter')} rules={[rules.duration]} extra={t('jobs.form.jitterHelp')}>
            <Input className="mono" autoComplete="off" placeholder="0s" />
          </Form.Item>
        )}
        {(kind === 'cron' || kind === 'daily_window') && (
          <Form.Item name={['schedule', 'dstGap']} label={t('jobs.form.dstGap')}>
            <Select
              options={[
                { value: 'run_at_gap_end', label: t('jobs.form.dstGapRun') },
                { value: 'skip', label: t('jobs.form.dstGapSkip') },
              ]}
            />
          </Form.Item>
        )}
        {kind === 'cron' && (
          <Form.Item name={['schedule', 'dstOverlap']} label={t('jobs.form.dstOverlap')}>
            <Select
              options={[
                { value: 'once', label: t('jobs.form.dstOverlapOnce') },
                { value: 'both', label: t('jobs.form.dstOverlapBoth') },
              ]}
            />
          </Form.Item>
        )}
        {takesCalendars(kind) && <CalendarFields />}
        {(kind === 'cron' || kind === 'fixed_rate' || kind === 'fixed_delay' || kind === 'daily_window') &&
          (bounded ? (
            <Suspense fallback={<span className="skeleton" />}>
              <Form.Item name={['schedule', 'startAt']} label={t('jobs.form.startAt')}>
                <WallPicker />
              </Form.Item>
              <Form.Item name={['schedule', 'endAt']} label={t('jobs.form.endAt')}>
                <WallPicker />
              </Form.Item>
            </Suspense>
          ) : (
            <Form.Item label={t('jobs.form.validity')}>
              <Button type="link" className="no-padding" onClick={() => setBounded(true)}>
                {t('jobs.form.addBounds')}
              </Button>
            </Form.Item>
          ))}
      </div>
      {kind === 'none' ? (
        <p className="muted">{t('jobs.form.kindNoneHelp')}</p>
      ) : (
        <div className="form-fields">
          <Form.Item name={['misfire', 'policy']} label={t('jobs.form.misfirePolicy')}>
            <Select
              options={[
                { value: 'skip', label: t('jobs.form.misfireSkip') },
                { value: 'once_now', label: t('jobs.form.misfireOnce') },
                { value: 'all', label: t('jobs.form.misfireAll') },
              ]}
            />
          </Form.Item>
          <Form.Item name={['misfire', 'threshold']} label={t('jobs.form.misfireThreshold')} rules={[rules.required, rules.duration]}>
            <Input className="mono" />
          </Form.Item>
        </div>
      )}
    </Section>
  )
}

export function HowSection({ advancedOpen, onAdvanced, secretSet }: { advancedOpen: boolean; onAdvanced: (open: boolean) => void; secretSet: boolean }) {
  const { t } = useTranslation()
  const rules = useRules()
  const duration = [rules.required, rules.duration]
  const blocking = Form.useWatch<string | undefined>('blocking')
  const parallel = blocking === 'parallel'
  const limited = (Form.useWatch<number | undefined>('parallelism') ?? 0) > 0
  const advanced = Form.useWatch((fields: JobFields) => ({ dispatch: fields.dispatchTimeout, onLost: fields.onLost, priority: fields.priority }))
  return (
    <Section title={t('jobs.form.how')}>
      <div className="form-fields">
        <RoutingFields />
        <Form.Item name="blocking" label={t('jobs.form.blocking')}>
          <Select options={(['serial', 'discard_later', 'cover_early', 'parallel'] as const).map((value) => ({ value, label: t(`jobs.form.blocking_${value}`) }))} />
        </Form.Item>
        {parallel && (
          <Form.Item name="parallelism" label={t('jobs.form.parallelism')} extra={t('jobs.form.parallelismHelp')} rules={[rules.needed]}>
            <InputNumber min={0} precision={0} className="full" />
          </Form.Item>
        )}
        {/* Kept in the form where it has no meaning, so that an edit does not change it. */}
        <Form.Item name="maxWaiting" label={t('jobs.form.maxWaiting')} extra={t('jobs.form.maxWaitingHelp')} rules={[rules.needed]} hidden={!(blocking === 'serial' || (parallel && limited))}>
          <InputNumber min={1} max={100_000} precision={0} className="full" />
        </Form.Item>
        <Form.Item name="timeout" label={t('jobs.form.timeout')} rules={duration} extra={t('jobs.form.timeoutHelp')}>
          <Input className="mono" />
        </Form.Item>
        <Form.Item name={['retry', 'maxAttempts']} label={t('jobs.form.attempts')} extra={t('jobs.form.attemptsHelp')} rules={[rules.needed, rules.attempts]}>
          <InputNumber className="full" />
        </Form.Item>
        <Form.Item name={['retry', 'delay']} label={t('jobs.form.retryDelay')} rules={duration}>
          <Input className="mono" />
        </Form.Item>
        <Form.Item name={['retry', 'backoff']} label={t('jobs.form.backoff')} rules={[rules.needed]}>
          <InputNumber min={1} max={10} step={0.5} className="full" />
        </Form.Item>
      </div>
      <ShardFields duration={duration} needed={rules.needed} />
      <details open={advancedOpen} onToggle={(event) => onAdvanced(event.currentTarget.open)} className="below-4">
        <summary>
          {t('jobs.form.advanced')}
          {!advancedOpen && advanced && (
            <span className="muted">
              {' '}
              · {t('jobs.form.dispatchTimeout')}: {advanced.dispatch} · {t('jobs.form.onLost')}: {advanced.onLost && t(`jobs.form.onLost_${advanced.onLost}`)} · {t('jobs.form.priority')}: {advanced.priority}
            </span>
          )}
        </summary>
        <div className="form-fields above-2">
          <Form.Item name={['retry', 'maxDelay']} label={t('jobs.form.maxDelay')} rules={duration}>
            <Input className="mono" />
          </Form.Item>
          <Form.Item name="dispatchTimeout" label={t('jobs.form.dispatchTimeout')} rules={duration}>
            <Input className="mono" />
          </Form.Item>
          <SendFields />
          <Form.Item name="onLost" label={t('jobs.form.onLost')} extra={t('jobs.form.onLostHelp')}>
            <Select options={(['auto', 'fail', 'retry'] as const).map((value) => ({ value, label: t(`jobs.form.onLost_${value}`) }))} />
          </Form.Item>
          <Form.Item name="priority" label={t('jobs.form.priority')} rules={[rules.needed]}>
            <InputNumber precision={0} min={-100} max={100} className="full" />
          </Form.Item>
          {(['onSuccess', 'onFailure'] as const).map((name) => (
            <Form.Item key={name} name={name} label={t(`jobs.form.${name === 'onSuccess' ? 'callbackSuccess' : 'callbackFailure'}`)} extra={t('jobs.form.callbackHelp')}>
              <CallbackField />
            </Form.Item>
          ))}
          <Form.Item name="logLevel" label={t('jobs.form.logLevel')}>
            <Select
              options={(['default', 'DEBUG', 'INFO', 'WARN', 'ERROR'] as const).map((value) => ({
                value,
                label: value === 'default' ? t('jobs.form.logLevelDefault') : t('runs.log.levelAtLeast', { level: value }),
              }))}
            />
          </Form.Item>
        </div>
      </details>
      <h3 className="below-2">{t('jobs.form.alert')}</h3>
      <Form.Item name={['alert', 'onFailure']} valuePropName="checked" noStyle>
        <Checkbox>{t('jobs.form.onFailure')}</Checkbox>
      </Form.Item>
      <br />
      <Form.Item name={['alert', 'includeNoExecutor']} valuePropName="checked" noStyle>
        <Checkbox>{t('jobs.form.includeNoExecutor')}</Checkbox>
      </Form.Item>
      <div className="form-fields above-3">
        <Form.Item name={['alert', 'emails']} label={t('jobs.form.emails')} rules={[rules.emails]} extra={t('jobs.form.emailsHelp')}>
          <Select mode="tags" open={false} suffixIcon={null} tokenSeparators={[',', ' ', ';']} />
        </Form.Item>
        <Form.Item name={['alert', 'webhookUrl']} label={t('jobs.form.webhookUrl')} rules={[rules.url]}>
          <Input inputMode="url" autoComplete="off" />
        </Form.Item>
        <Form.Item name={['alert', 'webhookSecret']} label={t('jobs.form.webhookSecret')} extra={t(secretSet ? 'jobs.form.webhookSecretKeep' : 'jobs.form.webhookSecretHelp')}>
          <Input.Password autoComplete="new-password" />
        </Form.Item>
      </div>
      <NobodyTold />
    </Section>
  )
}
