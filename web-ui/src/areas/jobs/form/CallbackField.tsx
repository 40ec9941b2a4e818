// What follows a run: a handler of the job's executor or of another one, an address, or a message.
import { Alert, Button, Input, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { http, take } from '../../../api/client'
import type { Callback, CallbackTrial } from '../../../api/types'
import { callbackKind, EMPTY_CALLBACKS, headersOf, headersText, type CallbackKind } from './callback'
import { writeJson } from '../../../lib/json'
import { HandlerInput, useCatalogue } from './HandlerFields'
import { useShowError } from '../../../ui/hooks'

interface Props {
  id?: string
  value?: Callback
  onChange?: (value: Callback) => void
}

export function CallbackField({ id, value = '', onChange }: Props) {
  const { t } = useTranslation()
  const kind = callbackKind(value)
  return (
    <div className="stack gap-1">
      <Select
        id={id}
        value={kind}
        onChange={(next) => onChange?.(EMPTY_CALLBACKS[next])}
        options={(Object.keys(EMPTY_CALLBACKS) as CallbackKind[]).map((one) => ({ value: one, label: t(`jobs.callback.${one}`) }))}
      />
      {typeof value === 'string' ? <HandlerInput value={value} onChange={(next) => onChange?.(next)} /> : <TargetFields value={value} onChange={onChange} />}
      {value !== '' && <TryCallback value={value} />}
    </div>
  )
}

type Target = Exclude<Callback, string>

function TargetFields({ value, onChange }: { value: Target; onChange?: (value: Callback) => void }) {
  const { t } = useTranslation()
  const text = (label: string, shown: string | undefined, change: (typed: string) => Target) => (
    <Input key={label} aria-label={label} placeholder={label} value={shown ?? ''} onChange={(event) => onChange?.(change(event.target.value))} />
  )
  if (value.url !== undefined)
    return (
      <>
        {text(t('jobs.callback.address'), value.url, (url) => ({ ...value, url }))}
        {text(t('jobs.callback.timeout'), value.timeout, (timeout) => ({ ...value, timeout }))}
        <LinesInput label={t('jobs.callback.headers')} value={headersText(value.headers)} onLeave={(lines) => onChange?.({ ...value, headers: headersOf(lines) })} />
      </>
    )
  if (value.connection)
    return (
      <>
        {text(t('jobs.callback.connection'), value.connection.name, (name) => ({ ...value, connection: { name } }))}
        <LinesInput label={t('jobs.callback.target')} value={writeJson(value.target ?? {})} onLeave={(json) => onChange?.({ ...value, target: targetOf(json, value.target) })} />
      </>
    )
  return (
    <>
      {text(t('jobs.callback.executor'), value.executor?.name, (name) => ({ ...value, executor: { name } }))}
      {text(t('jobs.callback.handler'), value.handler, (handler) => ({ ...value, handler }))}
    </>
  )
}

function targetOf(json: string, otherwise: Target['target']): Target['target'] {
  try {
    return JSON.parse(json) as Target['target']
  } catch {
    return otherwise
  }
}

/** Takes what was typed when it is left. */
function LinesInput({ label, value, onLeave }: { label: string; value: string; onLeave: (text: string) => void }) {
  const [typed, setTyped] = useState<string>()
  return (
    <Input.TextArea
      className="mono"
      aria-label={label}
      placeholder={label}
      autoSize
      value={typed ?? value}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={() => {
        if (typed !== undefined) onLeave(typed)
        setTyped(undefined)
      }}
    />
  )
}

function TryCallback({ value }: { value: Callback }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const { executorId } = useCatalogue()
  const [busy, setBusy] = useState(false)
  const [result, setResult] = useState<CallbackTrial>()
  const send = async () => {
    setBusy(true)
    setResult(undefined)
    try {
      setResult(await take(http.POST('/api/v1/callbacks/try', { body: { callback: value, ...(executorId ? { executor: { id: executorId } } : {}) } })))
    } catch (err) {
      showError(err)
    }
    setBusy(false)
  }
  const took = result?.timeout ? t('jobs.callback.took', { ms: result.durationMs, used: result.used ?? 0, timeout: result.timeout }) : ''
  return (
    <>
      <Button size="small" loading={busy} onClick={() => void send()} className="self-start">
        {t('jobs.callback.try')}
      </Button>
      {result && (
        <Alert
          type={result.ok ? 'success' : 'error'}
          title={[result.ok ? t('jobs.callback.works') : result.message, result.status ? `HTTP ${result.status}` : '', took].filter(Boolean).join(' · ')}
          description={result.body ? <pre className="code-block">{result.body}</pre> : undefined}
        />
      )}
    </>
  )
}
