// Whether each fire of a job is cut into shards, and how.
import { AutoComplete, Form, Input, InputNumber, Select } from 'antd'
import type { Rule } from 'antd/es/form'
import { useQuery } from '../../../api/useQuery'
import { useTranslation } from 'react-i18next'
import { queries } from '../../../api/queries'
import type { JobFields } from './jobForm'
import { useClearable } from '../../../ui/clearable'

export function ShardFields({ duration, needed }: { duration: Rule[]; needed: Rule }) {
  const { t } = useTranslation()
  const clearable = useClearable()
  const form = Form.useFormInstance<JobFields>()
  const mode = Form.useWatch(['sharding', 'mode'], form)
  const executorId = Form.useWatch('executorId', form)
  const executor = useQuery({ ...queries.executor(executorId ?? ''), enabled: Boolean(executorId && mode), refetchInterval: false })
  const handlers = (executorId ? (executor.data?.handlers ?? []) : []).map(({ name }) => ({ value: name }))
  const hook = (name: 'before' | 'after') => (
    <Form.Item name={['sharding', name]} label={t(`jobs.form.shard_${name}`)} extra={t(`jobs.form.shard_${name}Help`)}>
      <AutoComplete options={handlers} showSearch={{ filterOption: (typed, option) => String(option?.value ?? '').includes(typed) }} allowClear={clearable} maxLength={128} />
    </Form.Item>
  )
  return (
    <div className="form-fields">
      <Form.Item name={['sharding', 'mode']} label={t('jobs.form.sharding')} extra={mode ? t(`jobs.form.sharding_${mode}Help`) : undefined}>
        <Select
          options={[
            { value: '', label: t('jobs.form.sharding_none') },
            { value: 'broadcast', label: t('jobs.form.sharding_broadcast') },
            { value: 'fixed', label: t('jobs.form.sharding_fixed') },
          ]}
        />
      </Form.Item>
      {mode === 'fixed' && (
        <Form.Item name={['sharding', 'shards']} label={t('jobs.form.shards')} rules={[needed]}>
          <InputNumber min={1} max={1000} precision={0} className="full" />
        </Form.Item>
      )}
      {mode === 'broadcast' && (
        <Form.Item name={['sharding', 'onGone']} label={t('jobs.form.onGone')}>
          <Select options={(['miss', 'move'] as const).map((value) => ({ value, label: t(`jobs.form.onGone_${value}`) }))} />
        </Form.Item>
      )}
      {mode && (
        <>
          {hook('before')}
          {hook('after')}
          <Form.Item name={['sharding', 'timeout']} label={t('jobs.form.fireTimeout')} rules={duration} extra={t('jobs.form.fireTimeoutHelp')}>
            <Input className="mono" />
          </Form.Item>
        </>
      )}
    </div>
  )
}
