// Which script an agent's job runs.
import { useQuery } from '../../../api/useQuery'
import { Form, Input, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { scriptQueries } from '../../integrations/scripts'
import type { JobFields } from './jobForm'

export function ScriptFields({ language }: { language: string }) {
  const { t } = useTranslation()
  const form = Form.useFormInstance<JobFields>()
  const id = Form.useWatch(['script', 'id'], form) as string | undefined
  const scripts = useQuery(scriptQueries.allScripts())
  const chosen = scripts.data?.find((one) => one.id === id)
  const versions = Array.from({ length: chosen?.version ?? 0 }, (_, i) => (chosen?.version ?? 0) - i)
  return (
    <>
      <Form.Item name={['script', 'id']} label={t('scripts.jobScript')} rules={[{ required: true, message: t('field.required') }]} extra={t('scripts.jobScriptHelp')}>
        <Select
          showSearch={{ optionFilterProp: 'label' }}
          loading={scripts.isPending}
          options={(scripts.data ?? []).filter((one) => one.spec.language === language).map((one) => ({ value: one.id, label: one.name }))}
          onChange={() => form.setFieldValue(['script', 'revision'], null)}
        />
      </Form.Item>
      <Form.Item name={['script', 'revision']} label={t('scripts.jobRevision')}>
        <Select options={[{ value: null, label: t('scripts.jobNewest') }, ...versions.map((n) => ({ value: n, label: t('scripts.versionN', { n }) }))]} />
      </Form.Item>
      <Form.Item className="wide" name={['script', 'args']} label={t('scripts.jobArgs')} extra={t('scripts.jobArgsHelp', { brace: '{{' })}>
        <Input.TextArea className="mono" autoSize={{ minRows: 1, maxRows: 8 }} spellCheck={false} />
      </Form.Item>
    </>
  )
}
