// What the reference page reads of an OpenAPI 3.1 document.

export interface Schema {
  $ref?: string
  type?: string | string[]
  description?: string
  enum?: unknown[]
  items?: Schema
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  required?: string[]
  format?: string
  default?: unknown
  minimum?: number
  maximum?: number
  maxLength?: number
}

export interface Operation {
  method: string
  path: string
  operationId: string
  summary?: string
  description?: string
  tags?: string[]
  'x-policy'?: string
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[]
  requestBody?: { content: Record<string, { schema?: Schema }> }
  responses: Record<string, { description: string; content?: Record<string, { schema?: Schema }> }>
}

export interface Document {
  info: { title: string; version: string; description?: string }
  tags?: { name: string; description?: string }[]
  paths: Record<string, Record<string, Omit<Operation, 'method' | 'path'>>>
  components: { schemas: Record<string, Schema> }
}

export function operationsOf(doc: Document): Operation[] {
  return Object.entries(doc.paths).flatMap(([path, item]) => Object.entries(item).map(([method, op]) => ({ ...op, method, path })))
}

/** Every word of q is somewhere in the operation's name, path or summary. */
export function matches(op: Operation, q: string): boolean {
  const text = `${op.method} ${op.path} ${op.operationId} ${op.summary ?? ''}`.toLowerCase()
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

const nameOf = (ref: string) => ref.slice(ref.lastIndexOf('/') + 1)

/** The object that a schema is, or is a list of, or is unless it is null. */
export function shapeOf(doc: Document, schema: Schema): Schema | undefined {
  if (schema.$ref) return shapeOf(doc, doc.components.schemas[nameOf(schema.$ref)] ?? {})
  if (schema.items) return shapeOf(doc, schema.items)
  const one = schema.anyOf?.find((option) => option.type !== 'null')
  if (one) return shapeOf(doc, one)
  return schema.properties ? schema : undefined
}

/** A schema in a line: "Job or null", "list of Run", "string, one of a, b". */
export function schemaText(schema: Schema): string {
  if (schema.$ref) return nameOf(schema.$ref)
  if (schema.anyOf) return schema.anyOf.map(schemaText).join(' or ')
  if (schema.items) return `list of ${schemaText(schema.items)}`
  const parts = [[schema.type ?? 'any JSON'].flat().join(' or ')]
  if (schema.format) parts.push(schema.format)
  if (schema.enum) parts.push(`one of ${schema.enum.join(', ')}`)
  if (schema.minimum !== undefined) parts.push(`from ${schema.minimum}`)
  if (schema.maximum !== undefined) parts.push(`to ${schema.maximum}`)
  if (schema.maxLength !== undefined) parts.push(`at most ${schema.maxLength} characters`)
  if (schema.default !== undefined) parts.push(`default ${JSON.stringify(schema.default)}`)
  return parts.join(', ')
}
