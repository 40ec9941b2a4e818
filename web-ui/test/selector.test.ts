import { describe, expect, it } from 'vitest'
import { ROUTINGS } from '../src/areas/jobs/form/RoutingFields'
import { en } from '../src/i18n/en'
import { zh } from '../src/i18n/zh'
import { isPointer, isSelector } from '../src/lib/selector'

describe('selectors of labels', () => {
  it.each([
    '',
    '  ',
    'zone=eu',
    'zone == eu',
    'env!=prod',
    'gpu',
    '!spot',
    '! spot',
    'tier in (gold, silver)',
    'tier notin(lead)',
    'gpu=',
    ' zone=eu, tier in (a,b) , !spot,gpu ',
    'path=a/b.c_d-e, 中=文',
    'in in (x), notin',
  ])('takes %j', (text) => expect(isSelector(text)).toBe(true))
  it.each(['=eu', 'zone=eu tier=x', 'zone=eu,,a', 'zone=eu,', '!', 'zone in eu', 'zone in (eu', 'zone in (e u)', 'a)', 'a=b=c'])('refuses %j', (text) =>
    expect(isSelector(text)).toBe(false),
  )
})

describe('pointers into the input', () => {
  it.each(['/a', '/customer/id', '/a~1b/~0', '/', '/a//b'])('takes %j', (text) => expect(isPointer(text)).toBe(true))
  it.each(['a', 'customer.id', '/a~', '/a~2', '#/a'])('refuses %j', (text) => expect(isPointer(text)).toBe(false))
})

it('every strategy has its words in both languages', () => {
  for (const texts of [en, zh]) {
    const form = texts.jobs.form as Record<string, string>
    for (const routing of ROUTINGS) {
      expect(form[`routing_${routing}`]).toBeTruthy()
      expect(form[`routingHelp_${routing}`]).toBeTruthy()
    }
  }
})
