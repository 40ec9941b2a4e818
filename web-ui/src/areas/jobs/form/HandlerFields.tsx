// Choosing a handler from an executor's catalogue, and what it expects.
import { AutoComplete, Button, Form } from 'antd'
import { useTranslation } from 'react-i18next'
import { useQuery } from '../../../api/useQuery'
import { queries } from '../../../api/queries'
import type { Handler } from '../../../api/types'
import type { JobFields } from './jobForm'
import { writeJson } from '../../../lib/json'
import { exampleOf } from '../../../ui/input/JsonEditor'

/** The catalogue of the executor that the form has chosen. */
export function useCatalogue() {
  const executorId = Form.useWatch<string | undefined>('executorId')
  const executor = useQuery({ ...queries.executor(executorId ?? ''), enabled: Boolean(executorId), refetchInterval: false })
  return { executorId, executor: executorId ? executor.data : undefined, handlers: executorId ? (executor.data?.handlers ?? []) : [] }
}

interface InputProps {
  id?: string
  value?: string
  onChange?: (name: string) => void
}

/** A handler's name; one that is not in the catalogue may come later. */
export function HandlerInput(props: InputProps) {
  const { t } = useTranslation()
  const { executorId, handlers } = useCatalogue()
  return (
    <AutoComplete
      {...props}
      popupMatchSelectWidth={330}
      showSearch={{ filterOption: (typed, option) => String(option?.value ?? '').includes(typed) }}
      options={handlers.map((one) => ({ value: one.name, handler: one }))}
      optionRender={(option) => <HandlerOption handler={option.data.handler} />}
      placeholder={executorId ? undefined : t('jobs.form.pickExecutorFirst')}
    />
  )
}

function HandlerOption({ handler }: { handler: Handler }) {
  const { t } = useTranslation()
  return (
    <div>
      <span className="mono">{handler.name}</span> {handler.idempotent && <span className="label-chip">{t('jobs.form.handlerIdempotent')}</span>}
      {handler.description && <div className="muted small">{handler.description}</div>}
    </div>
  )
}

export function SchemaHint({ handler }: { handler: Handler }) {
  const { t } = useTranslation()
  const form = Form.useFormInstance<JobFields>()
  if (!handler.inputSchema) return <p className="muted small">{t('jobs.form.noSchema')}</p>
  return (
    <details>
      <summary>{t('jobs.form.schema')}</summary>
      <pre className="code-block above-1 below-1" tabIndex={0} role="region" aria-label={t('jobs.form.schema')}>
        {writeJson(handler.inputSchema, 2)}
      </pre>
      <Button size="small" onClick={() => form.setFieldValue('inputText', writeJson(exampleOf(handler.inputSchema), 2))}>
        {t('jobs.form.fillExample')}
      </Button>
    </details>
  )
}
