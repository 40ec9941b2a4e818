// The input of a job or a run: a form where the handler's JSON schema can be
// one, else JSON. The text is the one truth of both.
import { useQuery } from '../../api/useQuery'
import { Alert, Form } from 'antd'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { queries } from '../../api/queries'
import type { Handler } from '../../api/types'
import { canShow, readSchema } from './inputSchema'
import { sameJson, writeJson } from '../../lib/json'
import { JsonEditor, parseInput } from './JsonEditor'
import { misfitText } from '../../areas/runs/Misfits'
import { SchemaForm, type Refused } from './SchemaForm'
import { Switcher } from '../Switcher'

/** A handler from its executor's catalogue. */
export function useHandler(executorId: string | undefined, name: string | undefined): Handler | undefined {
  const executor = useQuery({ ...queries.executor(executorId ?? ''), enabled: Boolean(executorId), refetchInterval: false })
  return executorId ? executor.data?.handlers.find((one) => one.name === name) : undefined
}

interface Props {
  label: string
  schema: unknown
  /** Set by the form; "" is no input. */
  value?: string
  onChange?: (text: string) => void
  id?: string
  refused?: Refused
}

export function InputEditor({ label, schema, value: text = '', onChange, id = 'input', refused }: Props) {
  const { t } = useTranslation()
  const root = useMemo(() => readSchema(schema), [schema])
  const [asJson, setAsJson] = useState(false)
  const parsed = parseInput(text)
  const value = parsed.ok ? (parsed.value ?? {}) : undefined
  const shows = root !== undefined && parsed.ok && canShow(root, value)
  const form = shows && !asJson
  const complaints = refused && parsed.ok && sameJson(refused.value ?? {}, value) ? refused.items : []
  const invalid = !parsed.ok || complaints.length > 0
  // What no field is said of.
  const whole = form ? complaints.filter((item) => !item.pointer) : []
  return (
    <div role="group" aria-label={label}>
      <div className="input-head">
        <span>{label}</span>
        {root && (
          <Switcher
            label={t('schemaForm.as')}
            value={form ? 'form' : 'json'}
            onChange={(next) => setAsJson(next === 'json')}
            options={[
              { value: 'form', label: t('schemaForm.form'), disabled: !shows },
              { value: 'json', label: 'JSON' },
            ]}
          />
        )}
      </div>
      {root && parsed.ok && !shows && <Alert type="info" showIcon className="below-2" title={t('schemaForm.cannotShow')} />}
      {whole.length > 0 && (
        <div className="st-failed below-2" role="alert" ref={(shown) => shown?.scrollIntoView?.({ block: 'center' })}>
          {whole.map((item) => (
            <div key={item.message}>{misfitText(item)}</div>
          ))}
        </div>
      )}
      {form ? (
        <SchemaForm id={id} root={root} value={value} refused={refused} onChange={(next) => onChange?.(writeJson(next, 2))} />
      ) : (
        <Form.Item
          validateStatus={invalid ? 'error' : undefined}
          help={parsed.ok ? complaints.length > 0 && complaints.map((item) => <div key={`${item.pointer} ${item.message}`}>{misfitText(item)}</div>) : t('jobs.form.inputBad', { message: parsed.message })}
        >
          <JsonEditor id={id} value={text} onChange={onChange} label={label} invalid={invalid} />
        </Form.Item>
      )}
    </div>
  )
}
