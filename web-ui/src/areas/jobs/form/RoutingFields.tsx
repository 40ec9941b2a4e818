// Which instance gets the runs of a job, and how often they are sent.
import { Form, Input, InputNumber, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import type { Job } from '../../../api/types'
import { parseDuration } from '../../../lib/duration'
import { isPointer, isSelector } from '../../../lib/selector'

export const ROUTINGS: readonly Job['routing'][] = [
  'round_robin',
  'random',
  'consistent_hash',
  'least_loaded',
  'least_frequently_used',
  'least_recently_used',
  'first',
  'last',
  'failover',
  'busy_over',
]

/** What is empty is right; anything else has to hold. */
function useCheck() {
  return (holds: (value: string) => boolean, message: string) => ({
    validator: (_: unknown, value: string | undefined) => (!value?.trim() || holds(value) ? Promise.resolve() : Promise.reject(new Error(message))),
  })
}

export function RoutingFields() {
  const { t } = useTranslation()
  const check = useCheck()
  const routing = Form.useWatch<Job['routing'] | undefined>('routing')
  return (
    <>
      <Form.Item name="routing" label={t('jobs.form.routing')} extra={routing && t(`jobs.form.routingHelp_${routing}`)}>
        <Select options={ROUTINGS.map((value) => ({ value, label: t(`jobs.form.routing_${value}`) }))} />
      </Form.Item>
      {routing === 'consistent_hash' && (
        <Form.Item name="routingKey" label={t('jobs.form.routingKey')} extra={t('jobs.form.routingKeyHelp')} rules={[check(isPointer, t('jobs.form.routingKeyBad'))]}>
          <Input className="mono" autoComplete="off" maxLength={256} placeholder="/customer/id" />
        </Form.Item>
      )}
      <Form.Item name="requireLabels" label={t('jobs.form.requireLabels')} extra={t('jobs.form.requireLabelsHelp')} rules={[check(isSelector, t('jobs.form.selectorBad'))]}>
        <Input className="mono" autoComplete="off" maxLength={1024} placeholder="zone=eu, tier in (gold, silver), !spot" />
      </Form.Item>
    </>
  )
}

/** Those that few need. */
export function SendFields() {
  const { t } = useTranslation()
  const check = useCheck()
  const needed = { required: true, message: t('field.required') }
  const duration = [needed, check((value) => parseDuration(value) >= 0, t('jobs.form.durationBad'))]
  return (
    <>
      <Form.Item name="preferLabels" label={t('jobs.form.preferLabels')} extra={t('jobs.form.preferLabelsHelp')} rules={[check(isSelector, t('jobs.form.selectorBad'))]}>
        <Input className="mono" autoComplete="off" maxLength={1024} placeholder="gpu=a100" />
      </Form.Item>
      <Form.Item name={['sendRetry', 'maxSends']} label={t('jobs.form.maxSends')} extra={t('jobs.form.maxSendsHelp')} rules={[needed]}>
        <InputNumber min={0} max={1000} precision={0} className="full" />
      </Form.Item>
      <Form.Item name={['sendRetry', 'delay']} label={t('jobs.form.sendDelay')} extra={t('jobs.form.sendDelayHelp')} rules={duration}>
        <Input className="mono" />
      </Form.Item>
      <Form.Item name={['sendRetry', 'backoff']} label={t('jobs.form.sendBackoff')} rules={[needed]}>
        <InputNumber min={1} max={100} step={0.5} className="full" />
      </Form.Item>
      <Form.Item name={['sendRetry', 'maxDelay']} label={t('jobs.form.sendMaxDelay')} rules={duration}>
        <Input className="mono" />
      </Form.Item>
    </>
  )
}
