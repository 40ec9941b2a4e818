import { describe, expect, it } from 'vitest'
import { canShow, complaintOf, entriesOf, entryLines, itemsOf, linesOf, looseText, looseValue, partAt, pointerOf, readSchema, withPart, type Field, type ListField, type ObjectField } from '../src/ui/input/inputSchema'
import { JsonText } from '../src/lib/json'

// As the Go SDK writes it.
const order = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    customer: { description: 'Who pays', type: 'string' },
    amount: { type: 'number' },
    count: { type: 'integer', minimum: -2147483648, maximum: 2147483647 },
    currency: { type: 'string', enum: ['CNY', 'EUR'] },
    express: { type: 'boolean' },
    tags: { type: ['array', 'null'], items: { type: 'string' } },
    shops: { type: ['array', 'null'], items: { type: 'integer' } },
    due: { description: 'Not before', anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
    wait: { type: ['string', 'integer'], format: 'go-duration', examples: ['30s', '1h30m'] },
    address: { type: 'object', properties: { street: { type: 'string' }, zip: { type: 'string' } }, required: ['street'], additionalProperties: false },
  },
  required: ['customer', 'amount', 'currency', 'address'],
  additionalProperties: false,
}

const form = (properties: object, more: object = {}): ObjectField | undefined => readSchema({ type: 'object', properties, ...more })
const field = (schema: object): Field | undefined => form({ it: schema })?.properties[0]?.[1]

describe('readSchema', () => {
  it('reads what the SDK writes', () => {
    const root = readSchema(order)
    expect(root?.properties.map(([name, one]) => [name, one.kind])).toEqual([
      ['customer', 'text'],
      ['amount', 'number'],
      ['count', 'number'],
      ['currency', 'choice'],
      ['express', 'choice'],
      ['tags', 'list'],
      ['shops', 'list'],
      ['due', 'text'],
      ['wait', 'text'],
      ['address', 'object'],
    ])
    expect(root?.properties[7]?.[1]).toMatchObject({ format: 'date-time', description: 'Not before', nullable: true })
  })

  it('reads a handler without input', () => {
    expect(form({}, { additionalProperties: false })?.properties).toEqual([])
  })

  const strange: Record<string, object> = {
    'a keyword that it does not know': { type: 'string', contentEncoding: 'base64' },
    'a reference': { $ref: '#/$defs/x' },
    'one of several': { oneOf: [{ type: 'string' }, { type: 'integer' }] },
    'several types': { type: ['string', 'integer'] },
    'a list of objects': { type: 'array', items: { type: 'object', properties: {} } },
    'a list of anything': { type: 'array' },
    'a map of numbers': { type: 'object', additionalProperties: { type: 'integer' } },
    'a map beside names': { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } },
    'a list of maps': { type: 'array', items: { type: 'object', additionalProperties: { type: 'string' } } },
    'a constant': { const: 3 },
    'an enum of objects': { type: 'string', enum: [{}] },
  }
  for (const [name, schema] of Object.entries(strange)) {
    it(`leaves ${name} to JSON, with all that is around it`, () => {
      expect(form({ known: { type: 'string' }, strange: schema })).toBeUndefined()
    })
  }

  it('leaves to JSON what must be given and is not described, and what is no object', () => {
    expect(form({}, { required: ['secret'] })).toBeUndefined()
    expect(readSchema({ type: 'string' })).toBeUndefined()
    expect(readSchema(true)).toBeUndefined()
    expect(readSchema(undefined)).toBeUndefined()
  })

  it('stops at a depth that no person fills in', () => {
    let schema: object = { type: 'string' }
    for (let i = 0; i < 6; i++) schema = { type: 'object', properties: { in: schema } }
    expect(readSchema(schema)).toBeUndefined()
  })
})

describe('canShow', () => {
  const root = readSchema(order) as ObjectField
  it('shows a whole and a partial input, and one that breaks rules', () => {
    expect(canShow(root, {})).toBe(true)
    expect(canShow(root, { customer: '', amount: -1, tags: [], address: { street: 'Main 1' }, due: '2026-11-21T04:00:00Z' })).toBe(true)
    expect(canShow(root, { customer: 'c', amount: 1, tags: null, shops: null, due: null })).toBe(true)
    expect(canShow(root, { customer: null })).toBe(false)
    expect(complaintOf(root.properties[5]?.[1] as Field, null, true)).toBeUndefined()
  })

  const lossy: Record<string, object> = {
    'a field that the schema does not have': { colour: 'red' },
    'another type': { customer: 3 },
    'a number beyond what a field can hold': { count: new JsonText('1e400') },
    'an option that is none': { currency: 'USD' },
    'an instant with more than seconds': { due: '2026-11-21T04:00:00.123Z' },
    'lines in a line': { customer: 'a\nb' },
    'an item with spaces around it': { tags: [' a'] },
    'an empty item': { tags: [''] },
    'a nested field that is unknown': { address: { street: 'x', country: 'y' } },
  }
  for (const [name, value] of Object.entries(lossy)) {
    it(`does not show ${name}`, () => expect(canShow(root, value)).toBe(false))
  }
})

describe('complaintOf', () => {
  const complaint = (schema: object, value: unknown, required = false) => complaintOf(field(schema) as Field, value, required)?.key
  it('says what is wrong with a value', () => {
    expect(complaint({ type: 'string' }, undefined, true)).toBe('missing')
    expect(complaint({ type: 'string' }, undefined)).toBeUndefined()
    expect(complaint({ type: 'string', minLength: 2 }, '编')).toBe('short')
    expect(complaint({ type: 'string', maxLength: 2 }, '编钟')).toBeUndefined()
    expect(complaint({ type: 'string', maxLength: 2 }, 'abc')).toBe('long')
    expect(complaint({ type: 'integer' }, 1.5)).toBe('integer')
    expect(complaint({ type: 'integer', minimum: 1 }, 0)).toBe('min')
    expect(complaint({ type: 'integer', maximum: 1 }, 2)).toBe('max')
    expect(complaint({ type: 'number', exclusiveMinimum: 0 }, 0)).toBe('above')
    expect(complaint({ type: 'number', exclusiveMaximum: 1 }, 1)).toBe('below')
    expect(complaint({ type: 'array', items: { type: 'string' }, minItems: 2 }, ['a'])).toBe('few')
    expect(complaint({ type: 'array', items: { type: 'string' }, maxItems: 1 }, ['a', 'b'])).toBe('many')
    expect(complaint({ type: 'array', items: { type: 'integer' } }, [1, 'x'])).toBe('number')
  })
})

describe('values', () => {
  const root = readSchema(order) as ObjectField
  it('replaces and takes out parts, in place', () => {
    const value = { amount: 1, address: { street: 'a' }, tags: ['x'] }
    expect(JSON.stringify(withPart(root, value, ['amount'], 2))).toBe('{"amount":2,"address":{"street":"a"},"tags":["x"]}')
    expect(withPart(root, value, ['tags'], undefined)).toEqual({ amount: 1, address: { street: 'a' } })
    expect(withPart(root, {}, ['address', 'zip'], '1')).toEqual({ address: { zip: '1' } })
    expect(value).toEqual({ amount: 1, address: { street: 'a' }, tags: ['x'] })
  })

  it('takes an object out with its last part, unless it must be there', () => {
    const optional = form({ inner: { type: 'object', properties: { a: { type: 'string' } } } }) as ObjectField
    expect(withPart(optional, { inner: { a: 'x' } }, ['inner', 'a'], undefined)).toEqual({})
    expect(withPart(root, { address: { zip: '1' } }, ['address', 'zip'], undefined)).toEqual({ address: {} })
  })

  it('finds parts and points at them', () => {
    expect(partAt({ a: { b: 1 } }, ['a', 'b'])).toBe(1)
    expect(partAt({ a: [] }, ['a', 'length'])).toBeUndefined()
    expect(partAt({}, ['constructor'])).toBeUndefined()
    expect(pointerOf(['a/b', 'c~d'])).toBe('/a~1b/c~0d')
  })

  it('reads lines as items', () => {
    const numbers = field({ type: 'array', items: { type: 'integer' } }) as ListField
    expect(itemsOf(numbers, ' 1\n\n2\nx')).toEqual([1, 2, 'x'])
    expect(itemsOf(field({ type: 'array', items: { type: 'string' } }) as ListField, '1\n a b ')).toEqual(['1', 'a b'])
    expect(linesOf(['a', 'b'])).toBe('a\nb')
    expect(linesOf(undefined)).toBe('')
  })
})

describe('a map of texts', () => {
  const map = field({ type: 'object', additionalProperties: { type: 'string' } }) as Field
  it('is lines, and back', () => {
    expect(map.kind).toBe('map')
    const value = { Accept: 'text/plain', 'X-Url': 'http://a/b', Empty: '' }
    expect(entryLines(value)).toBe('Accept: text/plain\nX-Url: http://a/b\nEmpty: ')
    expect(entriesOf(entryLines(value))).toEqual(value)
    expect(entriesOf('\n  a :  b  \n:c\n')).toEqual({ a: 'b' })
  })
  it('stays JSON where lines would lose a part of it', () => {
    expect(canShow(map, { a: 'b' })).toBe(true)
    for (const value of [{ 'a:b': 'c' }, { a: 'b\nc' }, { a: ' b' }, { a: 1 }, ['a'], 'a', null]) expect(canShow(map, value), JSON.stringify(value)).toBe(false)
  })
})

describe('anything', () => {
  const any = field({ description: 'What it sends' }) as Field
  it('is JSON, or a text as it is typed', () => {
    expect(any).toMatchObject({ kind: 'json', description: 'What it sends' })
    for (const [typed, value] of [
      ['{"a": [1]}', { a: [1] }],
      ['17', 17],
      ['"17"', '17'],
      ['hello {{input.name}} ', 'hello {{input.name}} '],
      ['{"a": ', '{"a": '],
      ['  ', undefined],
    ] as const)
      expect(looseValue(typed)).toEqual(value)
    expect((looseValue('9007199254740993') as JsonText).text).toBe('9007199254740993')
  })
  it.each([undefined, '', 'plain', '17', ' 17 ', '"quoted"', 'null', 'two\nlines', { a: { b: [true] } }, 0, false, [], new JsonText('1.10')])('keeps %j', (value) => {
    expect(looseValue(looseText(value))).toEqual(value)
  })
  it('leaves null to JSON: an empty field is left out', () => {
    expect(canShow(any, null)).toBe(false)
    expect(canShow(any, [null])).toBe(true)
  })
})
