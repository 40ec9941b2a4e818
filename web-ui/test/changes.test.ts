import { describe, expect, it } from 'vitest'
import { sidesOf } from '../src/ui/Changes'

describe('an entry of the audit log', () => {
  it('shows the fields that differ', () => {
    expect(sidesOf('{"name":"shop","spec":{"zone":"Asia/Shanghai"}}', '{"name":"shop","spec":{"zone":"Europe/Berlin"}}')).toEqual([{ path: 'spec.zone', before: 'Asia/Shanghai', after: 'Europe/Berlin' }])
  })

  it('shows no side of a text that was cut', () => {
    expect(sidesOf('{"name":"sh… [4 of 9000 bytes]', '{"name":"shop"}')).toEqual([])
  })
})
