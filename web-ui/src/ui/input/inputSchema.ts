// Reads the JSON schema of a handler's input as a form. Only schemas that are
// understood whole become one: a keyword that is not known here could forbid
// what the form allows, or ask for what it cannot say.

import { exactNumber, isRecord, JsonText, parseJson, sameJson, writeJson } from '../../lib/json'

interface Common {
  title: string
  description: string
  /** As the schema gives it; the handler takes it when the field is left out. */
  fallback?: unknown
  example?: unknown
  /** null is allowed, too. */
  nullable: boolean
}

interface Bounds {
  min?: number
  max?: number
  above?: number
  below?: number
}

export interface TextField extends Common {
  kind: 'text'
  format: 'text' | 'date-time' | 'date' | 'go-duration'
  minLength: number
  maxLength?: number
}

export interface NumberField extends Common, Bounds {
  kind: 'number'
  integer: boolean
}

export interface ChoiceField extends Common {
  kind: 'choice'
  options: (string | number | boolean)[]
}

export interface ListField extends Common {
  kind: 'list'
  items: TextField | NumberField | ChoiceField
  minItems: number
  maxItems?: number
}

/** Names that are not known, each with a text. */
export interface MapField extends Common {
  kind: 'map'
}

/** Anything. */
export interface JsonField extends Common {
  kind: 'json'
}

export interface ObjectField extends Common {
  kind: 'object'
  properties: [name: string, field: Field][]
  required: string[]
  /** Fields that the schema does not name are refused. */
  closed: boolean
}

export type Field = TextField | NumberField | ChoiceField | ListField | MapField | JsonField | ObjectField

type Raw = Record<string, unknown>

const NOTES = ['$schema', '$id', '$comment', 'title', 'description', 'default', 'examples', 'deprecated']
const KEYWORDS: Record<string, string[]> = {
  // What a pattern or a multiple means, the server says.
  string: ['type', 'enum', 'format', 'minLength', 'maxLength', 'pattern'],
  number: ['type', 'enum', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  boolean: ['type', 'enum'],
  array: ['type', 'items', 'minItems', 'maxItems', 'uniqueItems'],
  object: ['type', 'properties', 'required', 'additionalProperties'],
}
const MAX_DEPTH = 4
const TEXT_FORMATS = ['date-time', 'date', 'go-duration'] as const

const texts = (value: unknown): string => (typeof value === 'string' ? value : '')
/** A number, to a double's precision: enough for a bound, which the server knows better. */
const num = (value: unknown): number | undefined => (typeof value === 'number' || value instanceof JsonText ? Number(value) : undefined)

/** The form of an input; undefined when the schema is not understood whole, or is of no object. */
export function readSchema(schema: unknown): ObjectField | undefined {
  const field = read(schema, 0)
  return field?.kind === 'object' ? field : undefined
}

function read(schema: unknown, depth: number): Field | undefined {
  if (!isRecord(schema) || depth > MAX_DEPTH) return undefined
  if (Array.isArray(schema.anyOf)) return readNullable(schema, schema.anyOf, depth)
  const { type, nullable } = typeOf(schema)
  if (Object.keys(schema).every((key) => NOTES.includes(key))) return { ...commonOf(schema, false), kind: 'json' }
  const shape = type && KEYWORDS[type === 'integer' ? 'number' : type]
  if (!shape || Object.keys(schema).some((key) => !NOTES.includes(key) && !shape.includes(key))) return undefined
  const common = commonOf(schema, nullable)
  if (schema.enum !== undefined) return readChoice(schema.enum, common)
  switch (type) {
    case 'string':
      return { ...common, kind: 'text', format: TEXT_FORMATS.find((one) => one === schema.format) ?? 'text', minLength: num(schema.minLength) ?? 0, maxLength: num(schema.maxLength) }
    case 'integer':
    case 'number':
      return { ...common, kind: 'number', integer: type === 'integer', min: num(schema.minimum), max: num(schema.maximum), above: num(schema.exclusiveMinimum), below: num(schema.exclusiveMaximum) }
    case 'boolean':
      return { ...common, kind: 'choice', options: [true, false] }
    case 'array':
      return readList(schema, common, depth)
    default:
      return readObject(schema, common, depth)
  }
}

function commonOf(schema: Raw, nullable: boolean): Common {
  return {
    title: texts(schema.title),
    description: texts(schema.description),
    nullable,
    ...(schema.default === undefined ? {} : { fallback: schema.default }),
    ...(Array.isArray(schema.examples) ? { example: schema.examples[0] as unknown } : {}),
  }
}

/** anyOf with null is how Go's pointers and Python's Optional are told. */
function readNullable(schema: Raw, anyOf: unknown[], depth: number): Field | undefined {
  const { anyOf: _, ...notes } = schema
  const others = anyOf.filter((one) => !(isRecord(one) && one.type === 'null'))
  if (others.length !== 1 || anyOf.length !== 2 || Object.keys(notes).some((key) => !NOTES.includes(key))) return undefined
  const field = read({ ...(others[0] as Raw), ...notes }, depth)
  return field && { ...field, nullable: true }
}

function typeOf(schema: Raw): { type: string | undefined; nullable: boolean } {
  const list = (Array.isArray(schema.type) ? schema.type : [schema.type]) as unknown[]
  const nullable = list.includes('null')
  let types = list.filter((one): one is string => typeof one === 'string' && one !== 'null')
  // A duration may also be a number of nanoseconds, which nobody types.
  if (schema.format === 'go-duration') types = types.filter((one) => one === 'string')
  if (types.length === 1) return { type: types[0], nullable }
  if (schema.type === undefined && isRecord(schema.properties)) return { type: 'object', nullable }
  return { type: undefined, nullable }
}

function readChoice(values: unknown, common: Common): ChoiceField | undefined {
  if (!Array.isArray(values) || values.length === 0) return undefined
  const options = values.filter((one): one is string | number | boolean => ['string', 'number', 'boolean'].includes(typeof one))
  const nulls = values.filter((one) => one === null).length
  if (options.length + nulls !== values.length) return undefined
  return { ...common, kind: 'choice', options, nullable: common.nullable && nulls > 0 }
}

function readList(schema: Raw, common: Common, depth: number): ListField | undefined {
  const items = read(schema.items, depth + 1)
  if (!items || items.nullable || (items.kind !== 'text' && items.kind !== 'number' && items.kind !== 'choice')) return undefined
  return { ...common, kind: 'list', items, minItems: num(schema.minItems) ?? 0, maxItems: num(schema.maxItems) }
}

function readObject(schema: Raw, common: Common, depth: number): ObjectField | MapField | undefined {
  const { properties = {}, required = [], additionalProperties: more } = schema
  if (isRecord(more)) {
    const named = schema.properties !== undefined || schema.required !== undefined
    return !named && more.type === 'string' && Object.keys(more).every((key) => key === 'type' || NOTES.includes(key)) ? { ...common, kind: 'map' } : undefined
  }
  if (!isRecord(properties) || !Array.isArray(required) || (more !== undefined && typeof more !== 'boolean')) return undefined
  const list: [string, Field][] = []
  for (const [name, part] of Object.entries(properties)) {
    const field = read(part, depth + 1)
    if (!field) return undefined
    list.push([name, field])
  }
  // Something has to be given of which nothing is known.
  if (required.some((name) => !Object.hasOwn(properties, String(name)))) return undefined
  return { ...common, kind: 'object', properties: list, required: required.map(String), closed: more === false }
}

/**
 * Whether the form can show a value and write it back without losing any of
 * it. A value that only breaks a rule is shown, with what is wrong.
 */
export function canShow(field: Field, value: unknown): boolean {
  // null is what Go writes for a list that was not set: it stays until somebody types.
  if (value === undefined || (value === null && field.nullable)) return true
  switch (field.kind) {
    case 'text':
      return typeof value === 'string' && !value.includes('\n') && (field.format !== 'date-time' || isInstant(value)) && (field.format !== 'date' || /^\d{4}-\d\d-\d\d$/.test(value))
    case 'number':
      // A field for numbers cannot show exponents beyond a double.
      return typeof value === 'number' || (value instanceof JsonText && /^-?\d+(\.\d+)?$/.test(value.text))
    case 'choice':
      return field.options.includes(value as string)
    case 'list':
      return Array.isArray(value) && canList(field, value)
    case 'map':
      return isRecord(value) && sameJson(entriesOf(entryLines(value)), value)
    case 'json':
      return value !== null // a field that is empty is left out
    case 'object': {
      if (!isRecord(value)) return false
      const known = new Map(field.properties)
      return Object.entries(value).every(([name, part]) => {
        const of = known.get(name)
        return of !== undefined && canShow(of, part)
      })
    }
  }
}

/** Lists are written as lines, those of choices are picked: each once. */
function canList({ items }: ListField, list: unknown[]): boolean {
  if (items.kind === 'choice' && new Set(list).size !== list.length) return false
  // A line that is no number stands as text, until it is one.
  return list.every((one) => (typeof one === 'string' && items.kind === 'number' ? true : canShow(items, one)) && (typeof one !== 'string' || (one !== '' && one.trim() === one)))
}

/** An instant to the second: a picker has no more. */
function isInstant(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.0+)?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text))
}

/** What is wrong with a value, as a key of schemaForm.* and its numbers; undefined = nothing. */
export type Complaint = { key: 'missing' | 'integer' | 'min' | 'max' | 'above' | 'below' | 'short' | 'long' | 'few' | 'many' | 'number'; n?: number }

export function complaintOf(field: Field, value: unknown, required: boolean): Complaint | undefined {
  if (value === undefined) return required ? { key: 'missing' } : undefined
  if (value === null && field.nullable) return undefined
  if (field.kind === 'number') return typeof value === 'number' || value instanceof JsonText ? numberComplaint(field, value) : { key: 'number' }
  if (field.kind === 'text' && typeof value === 'string') {
    const length = [...value].length
    if (length < field.minLength) return { key: 'short', n: field.minLength }
    return field.maxLength !== undefined && length > field.maxLength ? { key: 'long', n: field.maxLength } : undefined
  }
  if (field.kind === 'list' && Array.isArray(value)) {
    if (value.length < field.minItems) return { key: 'few', n: field.minItems }
    if (field.maxItems !== undefined && value.length > field.maxItems) return { key: 'many', n: field.maxItems }
    return value.map((one) => complaintOf(field.items, one, true)).find(Boolean)
  }
  return undefined
}

function numberComplaint(field: NumberField, given: number | JsonText): Complaint | undefined {
  const value = Number(given)
  if (field.integer && !(Number.isInteger(value) && /^[^.]*(\.0+)?$/.test(String(given)))) return { key: 'integer' }
  if (field.min !== undefined && value < field.min) return { key: 'min', n: field.min }
  if (field.max !== undefined && value > field.max) return { key: 'max', n: field.max }
  // What is rounded to the bound may be on either side of it.
  if (given instanceof JsonText && (value === field.above || value === field.below)) return undefined
  if (field.above !== undefined && value <= field.above) return { key: 'above', n: field.above }
  return field.below !== undefined && value >= field.below ? { key: 'below', n: field.below } : undefined
}

/** The part of a value at a path; undefined when there is none. */
export function partAt(value: unknown, path: string[]): unknown {
  return path.reduce<unknown>((part, name) => (isRecord(part) && Object.hasOwn(part, name) ? part[name] : undefined), value)
}

/** A copy with one part replaced, or taken out by undefined; an object that is empty then goes with it, if it may. */
export function withPart(field: ObjectField, value: unknown, [name, ...rest]: string[], part: unknown): Raw {
  const base = isRecord(value) ? value : {}
  if (name === undefined) return base
  const inner = field.properties.find(([one]) => one === name)?.[1]
  const next = rest.length > 0 && inner?.kind === 'object' ? withPart(inner, base[name], rest, part) : part
  const empty = next === undefined || (isRecord(next) && Object.keys(next).length === 0 && !field.required.includes(name))
  if (!empty) return { ...base, [name]: next }
  const { [name]: _, ...others } = base
  return others
}

/** RFC 6901, as the server points at what does not fit. */
export function pointerOf(path: string[]): string {
  return path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** Names and texts as lines "name: text", and back; a line without a colon has an empty text. */
export function entryLines(value: unknown): string {
  return isRecord(value) ? Object.entries(value).map(([name, text]) => `${name}: ${typeof text === 'string' ? text : writeJson(text)}`).join('\n') : ''
}

export function entriesOf(text: string): Raw {
  const pairs = text.split('\n').map((line) => {
    const [name = '', ...rest] = line.split(':')
    return [name.trim(), rest.join(':').trim()]
  })
  return Object.fromEntries(pairs.filter(([name]) => name))
}

/** Any value as a person types it, and back: what is not JSON is a text. */
export function looseText(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' && looseValue(value) === value ? value : writeJson(value, 2)
}

export function looseValue(typed: string): unknown {
  const text = typed.trim()
  if (!text) return undefined
  try {
    return parseJson(text)
  } catch {
    return typed
  }
}

/** The items of a list as lines, and back; a line that is no number stays text, and is complained of. */
export function linesOf(value: unknown): string {
  return Array.isArray(value) ? value.join('\n') : ''
}

export function itemsOf(field: ListField, text: string): unknown[] {
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter(Boolean).map((line) => {
    const number = field.items.kind === 'number' ? (exactNumber(line) ?? Number(line)) : line
    return Number.isFinite(number) || number instanceof JsonText ? number : line
  })
}
