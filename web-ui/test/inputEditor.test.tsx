// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { Form } from 'antd'
import i18next from 'i18next'
import { useState } from 'react'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { InputEditor } from '../src/ui/input/InputEditor'
import type { Refused } from '../src/ui/input/SchemaForm'
import { en } from '../src/i18n/en'
import { parseJson } from '../src/lib/json'

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(cleanup)

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'Who pays' },
    count: { type: 'integer', minimum: 1, default: 3 },
    tags: { type: 'array', items: { type: 'string' } },
    address: { type: 'object', properties: { street: { type: 'string' } }, required: ['street'] },
  },
  required: ['name'],
  additionalProperties: false,
}

let text = ''
function Harness({ start, of, refused }: { start: string; of: unknown; refused?: Refused }) {
  const [value, setValue] = useState(start)
  return (
    <I18nextProvider i18n={i18next}>
      <>
        <QueryClientProvider client={new QueryClient()}>
          <Form layout="vertical" component="div">
            <InputEditor label="Input" schema={of} value={value} onChange={(next) => setValue((text = next))} refused={refused} />
          </Form>
        </QueryClientProvider>
      </>
    </I18nextProvider>
  )
}
const show = (start: string, of: unknown = schema, refused?: Refused) => render(<Harness start={start} of={of} refused={refused} />)
const type = (label: string, value: string) => fireEvent.change(screen.getByLabelText(label), { target: { value } })

describe('InputEditor', () => {
  it('writes JSON from fields, without those that are empty', () => {
    show('')
    expect(screen.getByText('Who pays')).toBeTruthy()
    expect(screen.getByText('left out: 3')).toBeTruthy()
    type('name', 'ACME')
    type('count', '2')
    type('tags', 'a\nb\n')
    type('street', 'Main 1')
    expect(JSON.parse(text)).toEqual({ name: 'ACME', count: 2, tags: ['a', 'b'], address: { street: 'Main 1' } })
    type('street', '')
    type('tags', '')
    expect(JSON.parse(text)).toEqual({ name: 'ACME', count: 2 })
  })

  it('takes a required text that was emptied as not given, and keeps an empty one of the JSON', () => {
    show('{"name":"ACME","count":2}')
    type('name', '')
    fireEvent.blur(screen.getByLabelText('name'))
    expect(screen.getByText(en.schemaForm.missing)).toBeTruthy()
    expect(JSON.parse(text)).toEqual({ count: 2 })
    cleanup()
    show('{"name":"","count":2}')
    type('count', '5')
    expect(JSON.parse(text)).toEqual({ name: '', count: 5 })
  })

  it('shows what is stored and what is wrong with it once it was left', () => {
    show('{"name":"ACME","count":0}')
    expect((screen.getByLabelText('name') as HTMLInputElement).value).toBe('ACME')
    expect(screen.queryByText('Must be at least 1.')).toBeNull()
    fireEvent.blur(screen.getByLabelText('count'))
    expect(screen.getByText('Must be at least 1.')).toBeTruthy()
  })

  it('shows what the server said at its field, until the field is changed', () => {
    show('{"count":2}', schema, { value: { count: 2 }, items: [{ location: 'body.input.name', message: 'is missing', pointer: '/name' }] })
    expect(screen.getByText('is missing')).toBeTruthy()
    type('count', '5')
    expect(screen.getByLabelText('name').getAttribute('aria-invalid')).toBe('true')
    type('name', 'ACME')
    expect(screen.getByLabelText('name').getAttribute('aria-invalid')).toBe('false')
  })

  it('keeps every digit of a long number, in a field and beside one', () => {
    const of = { type: 'object', properties: { order: { type: 'integer', maximum: parseJson('9223372036854775807') }, tags: { type: 'array', items: { type: 'integer' } }, n: { type: 'integer' } } }
    show('{"order": 9007199254740993, "tags": [9007199254740995, 1]}', of)
    expect((screen.getByLabelText('order') as HTMLInputElement).value).toBe('9007199254740993')
    expect((screen.getByLabelText('tags') as HTMLInputElement).value).toBe('9007199254740995\n1')
    type('n', '2')
    expect(text.replaceAll(/\s/g, '')).toBe('{"order":9007199254740993,"tags":[9007199254740995,1],"n":2}')
    type('order', '9007199254740997')
    type('tags', '9007199254740999')
    expect(text.replaceAll(/\s/g, '')).toBe('{"order":9007199254740997,"tags":[9007199254740999],"n":2}')
    fireEvent.blur(screen.getByLabelText('order'))
    expect(screen.getByLabelText('order').getAttribute('aria-invalid')).toBe('false')
  })

  it('shows what the server said of the whole input, until it is changed', () => {
    show('{"name":"ACME"}', schema, { value: { name: 'ACME' }, items: [{ location: 'body.input', message: 'ACME may not be called', value: null }] })
    expect(screen.getByRole('alert').textContent).toBe('ACME may not be called')
    type('name', 'EMCA')
    expect(screen.queryByRole('alert')).toBeNull()
  })

  it('writes texts by name, and anything', () => {
    show('', { type: 'object', properties: { headers: { type: 'object', additionalProperties: { type: 'string' } }, body: { description: 'sent' }, method: { enum: ['GET', ''], type: 'string' } } })
    type('headers', 'Accept: text/plain\nX-Run:')
    type('body', '{"a":[1]}')
    expect(JSON.parse(text)).toEqual({ headers: { Accept: 'text/plain', 'X-Run': '' }, body: { a: [1] } })
    type('body', 'hello {{run.id}}')
    type('headers', '')
    expect(JSON.parse(text)).toEqual({ body: 'hello {{run.id}}' })
  })

  it('changes to JSON and back', () => {
    show('{"name":"ACME"}')
    fireEvent.click(screen.getByLabelText('JSON'))
    expect(screen.queryByLabelText('name')).toBeNull()
    fireEvent.click(screen.getByLabelText('Form'))
    expect((screen.getByLabelText('name') as HTMLInputElement).value).toBe('ACME')
  })

  it('stays JSON for an input that the form would lose a part of, and says so', () => {
    show('{"name":"ACME","colour":"red"}')
    expect(screen.getByText(/cannot show this input/)).toBeTruthy()
    expect((screen.getByLabelText('Form') as HTMLInputElement).disabled).toBe(true)
    expect(screen.queryByLabelText('name')).toBeNull()
  })

  it('is plain JSON without a schema that it understands', () => {
    show('{"a":1}', { type: 'object', patternProperties: {} })
    expect(screen.queryByLabelText('Form')).toBeNull()
    expect(screen.getByLabelText('Input', { selector: 'textarea' })).toBeTruthy()
  })

  it('says when there is nothing to fill in', () => {
    show('', { type: 'object', properties: {}, additionalProperties: false })
    expect(screen.getByText('The handler takes no input.')).toBeTruthy()
  })
})
