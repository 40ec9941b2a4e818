import { describe, expect, it } from 'vitest'
import { callbackJob, callbackKind, callbackText, cleanCallback, headersOf, headersText } from '../src/areas/jobs/form/callback'
import { fieldsOf, newJob, writeOfFields } from '../src/areas/jobs/form/jobForm'

const kinds = [
  ['own', 'told', 'told', 'callback:shop/told'],
  ['other', { handler: 'booked', executor: { id: '7', name: 'billing' } }, 'billing/booked', 'callback:billing/booked'],
  ['url', { url: 'https://a.example/x', timeout: '3s', headers: { 'X-Team': 'pay' } }, 'https://a.example/x · 3s', 'callback:carillon/http'],
  ['message', { connection: { id: '9', name: 'orders' }, target: { topic: 'ended' } }, 'orders · ended', 'callback:carillon/publish'],
] as const

describe('callbacks of a job', () => {
  it.each(kinds)('%s is shown, and saved as it was read', (kind, value, text, job) => {
    expect(callbackKind(value)).toBe(kind)
    expect(callbackText(value)).toBe(text)
    expect(callbackJob(value, 'shop')).toBe(job)
    const fields = fieldsOf({ ...newJob('1', 'work'), onSuccess: value, onFailure: value })
    expect(writeOfFields(fields).onFailure).toEqual(value)
  })

  it('sends nothing that was left empty', () => {
    expect(cleanCallback({ url: ' https://a.example ', timeout: ' ', headers: {} })).toEqual({ url: 'https://a.example' })
    expect(cleanCallback('  ')).toBe('')
  })

  it('reads headers as they are written', () => {
    const headers = { 'X-Team': 'pay', Authorization: 'Basic a:b' }
    expect(headersOf(headersText(headers))).toEqual(headers)
  })
})
