import { describe, expect, it } from 'vitest'
import { conflicts, diffFields, merge, showValue } from '../src/lib/diff'
import { exactNumber, JsonText, losesNumbers, parseJson, sameJson, writeJson } from '../src/lib/json'
import { fieldsOf, newJob, writeOfFields } from '../src/areas/jobs/form/jobForm'

const BIG = '9007199254740993' // 2^53 + 1, which no double is

describe('JSON without loss', () => {
  it.each([
    `{"id":${BIG}}`,
    `[${BIG},-${BIG},123456789012345678901234567890,1e400,-1E-400]`,
    '[0.1234567890123456789,1.0,1e3,-0,0.10]',
    `{"text":"${BIG} \\"1.0\\" \\\\","${BIG}":1.50}`,
    `{"deep":[{"a":{"b":[${BIG}]}}],"plain":[1,2.5,true,null,"x"]}`,
    BIG,
    '1.0',
  ])('%s comes out as it went in', (text) => {
    expect(losesNumbers(text)).toBe(true)
    expect(writeJson(parseJson(text))).toBe(text)
  })

  it('leaves alone what a double holds: numbers stay numbers', () => {
    const text = '{"a":1,"b":-2.5,"c":9007199254740991,"d":9007199254740992,"e":"1.0","f":1e+21,"g":[]}'
    expect(losesNumbers(text)).toBe(false)
    expect(parseJson(text)).toEqual(JSON.parse(text))
  })

  it('finds the same faults as JSON.parse', () => {
    for (const text of ['{"a":}', `[${BIG},]`, '', '01', `{"a":${BIG}`]) expect(() => parseJson(text), text).toThrow(SyntaxError)
  })

  it('writes a text as it was typed, also when it is no number', () => {
    expect(writeJson({ input: new JsonText('{"b":1.0,\n "a": "$1"}'), n: 1 })).toBe('{"input":{"b":1.0,\n "a": "$1"},"n":1}')
    expect(writeJson(undefined)).toBe('')
  })

  it('compares by value and digits, whatever the order of the keys', () => {
    expect(sameJson(parseJson(`{"a":${BIG},"b":1}`), parseJson(`{"b":1,"a":${BIG}}`))).toBe(true)
    expect(sameJson(parseJson(BIG), parseJson('9007199254740992'))).toBe(false)
  })

  it('reads a number from what was typed', () => {
    expect(exactNumber('42')).toBe(42)
    expect(exactNumber(BIG)).toEqual(new JsonText(BIG))
    for (const text of ['', '-', '007', '1.', 'abc', '0x10']) expect(exactNumber(text), text).toBeUndefined()
  })
})

describe('a job with a long number', () => {
  const job = { ...newJob('1', 'h'), name: 'pay', input: parseJson(`{"order":${BIG},"n":1}`) }

  it('keeps it through the form', () => {
    const fields = fieldsOf(job)
    expect(fields.inputText).toContain(BIG)
    expect(writeJson(writeOfFields(fields).input)).toBe(`{"order":${BIG},"n":1}`)
  })

  it('keeps it in differences and through a conflict', () => {
    const next = { ...job, input: parseJson(`{"order":${BIG},"n":2}`) }
    const rounded = { ...job, input: JSON.parse(`{"order":${BIG},"n":1}`) as unknown }
    expect(diffFields(job, rounded).map((one) => showValue(one.before))).toEqual([`{"order":${BIG},"n":1}`])
    expect(diffFields(job, { ...job, input: parseJson(`{"n":1,"order":${BIG}}`) })).toEqual([])
    const mine = { ...job, description: 'mine' }
    const list = conflicts(job, mine, next)
    const merged = merge(mine, list, { input: 'theirs', description: 'mine' })
    expect(writeJson(merged.input)).toBe(`{"order":${BIG},"n":2}`)
    expect(merged.description).toBe('mine')
    expect(writeJson(mine.input), 'the draft itself is not touched').toContain('"n":1')
  })
})
