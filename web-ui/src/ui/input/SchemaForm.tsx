// The fields of a handler's input, made from its JSON schema.
import { Form, Input, InputNumber, Select } from 'antd'
import { createContext, use, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useClearable } from '../clearable'
import type { ProblemItem } from '../../api/types'
import {
  complaintOf,
  entriesOf,
  entryLines,
  itemsOf,
  linesOf,
  looseText,
  looseValue,
  partAt,
  pointerOf,
  withPart,
  type ChoiceField,
  type Field,
  type ListField,
  type ObjectField,
  type TextField,
} from './inputSchema'
import { exactNumber, JsonText, sameJson, writeJson } from '../../lib/json'
import { instantToWall, localZone, wallToInstant } from '../../lib/time'

/** An input that the server did not take, and what it said of it. */
export interface Refused {
  value: unknown
  items: ProblemItem[]
}

interface FormState {
  id: string
  root: ObjectField
  value: unknown
  onChange: (value: unknown) => void
  refused: Refused | undefined
}

const State = createContext<FormState | undefined>(undefined)

export function SchemaForm(props: FormState) {
  const { t } = useTranslation()
  if (props.root.properties.length === 0) return <p className="muted below-4">{t('schemaForm.noFields')}</p>
  return (
    <State value={props}>
      <Fields of={props.root} path={[]} active />
    </State>
  )
}

/** active: the object is there or must be, so what it requires has to be given. */
function Fields({ of, path, active }: { of: ObjectField; path: string[]; active: boolean }) {
  return (
    <div className="form-fields">
      {of.properties.map(([name, field]) => {
        const required = of.required.includes(name)
        return field.kind === 'object' ? (
          <Group key={name} name={name} field={field} path={[...path, name]} required={active && required} />
        ) : (
          <One key={name} name={name} field={field} path={[...path, name]} required={active && required} />
        )
      })}
    </div>
  )
}

function Group({ name, field, path, required }: { name: string; field: ObjectField; path: string[]; required: boolean }) {
  const state = use(State)
  const said = useSaid(path, true)
  return (
    <fieldset className="wide schema-group">
      <legend>{required ? <Required>{field.title || name}</Required> : field.title || name}</legend>
      {field.description && <p className="muted small">{field.description}</p>}
      {said && <p className="st-failed small">{said}</p>}
      <Fields of={field} path={path} active={required || partAt(state?.value, path) !== undefined} />
    </fieldset>
  )
}

const Required = ({ children }: { children: ReactNode }) => (
  <>
    <span className="st-failed" aria-hidden="true">
      *
    </span>{' '}
    {children}
  </>
)

/** What the server said of the value at a path, until it is another one. */
function useSaid(path: string[], exact: boolean): string {
  const state = use(State)
  if (!state?.refused) return ''
  const { value, items } = state.refused
  if (!sameJson(partAt(value, path), partAt(state.value, path))) return ''
  const pointer = pointerOf(path)
  return items
    .filter((item) => item.pointer === pointer || (!exact && item.pointer?.startsWith(`${pointer}/`)))
    .map((item) => [item.message, item.hint].filter(Boolean).join('; '))
    .join(' · ')
}

interface OneProps {
  name: string
  field: Exclude<Field, ObjectField>
  path: string[]
  required: boolean
}

const WIDE = new Set<Field['kind']>(['list', 'map', 'json'])

function One({ name, field, path, required }: OneProps) {
  const { t } = useTranslation()
  const state = use(State)
  const [touched, setTouched] = useState(false)
  const said = useSaid(path, false)
  if (!state) return null
  const value = partAt(state.value, path)
  const complaint = touched ? complaintOf(field, value, required) : undefined
  const error = complaint ? t(`schemaForm.${complaint.key}`, { n: complaint.n, count: complaint.n }) : said
  const id = `${state.id}${pointerOf(path).replaceAll(/[^\w-]/g, '-')}`
  const set = (next: unknown) => {
    // An emptied field is not given. A text that is to be empty can be written as JSON.
    const gone = next === '' || next === null
    state.onChange(withPart(state.root, state.value, path, gone ? undefined : next))
  }
  return (
    <Form.Item
      className={WIDE.has(field.kind) ? 'wide' : undefined}
      label={field.title || name}
      htmlFor={id}
      required={required}
      validateStatus={error ? 'error' : undefined}
      help={error || undefined}
      extra={<Notes field={field} />}
    >
      <div onBlur={() => setTouched(true)}>
        <Control id={id} field={field} value={value} onChange={set} invalid={Boolean(error)} />
      </div>
    </Form.Item>
  )
}

function Notes({ field }: { field: Exclude<Field, ObjectField> }) {
  const { t } = useTranslation()
  const notes = [
    field.description,
    field.kind === 'list' && field.items.kind !== 'choice' && t('schemaForm.perLine'),
    field.kind === 'map' && t('schemaForm.entryPerLine'),
    field.kind === 'json' && t('schemaForm.anything'),
    field.kind === 'text' && field.format === 'date-time' && t('schemaForm.zone', { zone: localZone }),
    field.fallback !== undefined && t('schemaForm.fallback', { value: typeof field.fallback === 'string' ? field.fallback : writeJson(field.fallback) }),
  ].filter(Boolean)
  return notes.length > 0 ? <>{notes.join(' · ')}</> : null
}

interface ControlProps<F extends Field> {
  id: string
  field: F
  value: unknown
  onChange: (value: unknown) => void
  invalid: boolean
}

function Control(props: ControlProps<Exclude<Field, ObjectField>>) {
  const { field, ...rest } = props
  switch (field.kind) {
    case 'text':
      return <Text {...rest} field={field} />
    case 'choice':
      return <Choice {...rest} field={field} />
    case 'list':
      return field.items.kind === 'choice' ? (
        <Choices {...rest} field={field} items={field.items} />
      ) : (
        <Typed {...rest} show={linesOf} read={(text) => noneIfEmpty(itemsOf(field, text))} />
      )
    case 'map':
      return <Typed {...rest} show={entryLines} read={(text) => noneIfEmpty(entriesOf(text))} />
    case 'json':
      return <Typed {...rest} show={looseText} read={looseValue} />
    case 'number':
      return (
        <InputNumber
          id={rest.id}
          aria-invalid={rest.invalid}
          className="full"
          // Texts have every digit; a number of the browser has about 16.
          stringMode
          value={rest.value === undefined || rest.value === null ? undefined : String(rest.value)}
          onChange={(text: string | null) => rest.onChange(text === null ? null : (exactNumber(text) ?? Number(text)))}
          placeholder={exampleText(field.example)}
          {...(field.integer ? { inputMode: 'numeric' as const } : {})}
        />
      )
  }
}

const exampleText = (example: unknown): string | undefined => (typeof example === 'string' || typeof example === 'number' || example instanceof JsonText ? String(example) : undefined)

const NATIVE = { 'date-time': 'datetime-local', date: 'date', text: 'text', 'go-duration': 'text' } as const

function Text({ id, field, value, onChange, invalid }: ControlProps<TextField>) {
  const instant = field.format === 'date-time'
  const text = (value as string | undefined) ?? ''
  const change = (typed: string) => onChange(instant && typed ? wallToInstant(typed.length === 16 ? `${typed}:00` : typed, localZone).replace('.000Z', 'Z') : typed)
  return (
    <Input
      id={id}
      aria-invalid={invalid}
      type={NATIVE[field.format]}
      {...(instant ? { step: 1 } : {})}
      autoComplete="off"
      spellCheck={false}
      className={field.format === 'go-duration' ? 'mono' : undefined}
      placeholder={exampleText(field.example)}
      value={instant && text ? instantToWall(text, localZone) : text}
      onChange={(event) => change(event.target.value)}
    />
  )
}

/** An empty text is offered only where it stands already: to leave the field out says the same. */
function useOptions({ options }: ChoiceField, value?: unknown) {
  const { t } = useTranslation()
  const all = options.map((one, i) => ({ value: i, label: typeof one === 'boolean' ? t(one ? 'schemaForm.yes' : 'schemaForm.no') : String(one) }))
  return all.filter(({ value: i }) => options[i] !== '' || value === '')
}

function Choice({ id, field, value, onChange, invalid }: ControlProps<ChoiceField>) {
  const { t } = useTranslation()
  const clearable = useClearable()
  const at = field.options.indexOf(value as string)
  return (
    <Select
      id={id}
      aria-invalid={invalid}
      allowClear={clearable}
      placeholder={t('schemaForm.choose')}
      options={useOptions(field, value)}
      value={at < 0 ? undefined : at}
      onChange={(index: number | undefined) => onChange(index === undefined ? undefined : field.options[index])}
    />
  )
}

function Choices({ id, items, value, onChange, invalid }: ControlProps<ListField> & { items: ChoiceField }) {
  const { t } = useTranslation()
  const list = (value as unknown[] | undefined) ?? []
  return (
    <Select
      id={id}
      aria-invalid={invalid}
      mode="multiple"
      placeholder={t('schemaForm.choose')}
      options={useOptions(items)}
      value={list.map((one) => items.options.indexOf(one as string))}
      onChange={(at: number[]) => onChange(at.length > 0 ? at.map((index) => items.options[index]) : undefined)}
    />
  )
}

const noneIfEmpty = (value: object) => (Object.keys(value).length > 0 ? value : undefined)

interface TypedProps extends Omit<ControlProps<Field>, 'field'> {
  show: (value: unknown) => string
  read: (text: string) => unknown
}

/** A value as text of several lines; what is being typed may have empty ones. */
function Typed({ id, value, onChange, invalid, show, read }: TypedProps) {
  const [typed, setTyped] = useState(() => show(value))
  // The value has become another one than what was typed here.
  const text = show(read(typed)) === show(value) ? typed : show(value)
  return (
    <Input.TextArea
      id={id}
      aria-invalid={invalid}
      className="mono"
      rows={Math.min(Math.max(text.split('\n').length, 2), 12)}
      spellCheck={false}
      value={text}
      onChange={(event) => {
        setTyped(event.target.value)
        onChange(read(event.target.value))
      }}
    />
  )
}
