import { describe, expect, it } from 'vitest'
import { foldLines } from '../src/areas/integrations/scriptDiff'

const same = (n: number) => Array.from({ length: n }, (_, i) => ({ op: 'same' as const, text: `line ${i}` }))

describe('folding of a difference', () => {
  it('keeps three lines beside each change', () => {
    const lines = [...same(10), { op: 'added' as const, text: 'new' }, ...same(10)]
    const folded = foldLines(lines)
    expect(folded.map((one) => (one.op === 'folded' ? one.count : one.op))).toEqual([7, 'same', 'same', 'same', 'added', 'same', 'same', 'same', 7])
  })

  it('folds nothing where changes are near, and all where there are none', () => {
    const lines = [{ op: 'removed' as const, text: 'old' }, ...same(6), { op: 'added' as const, text: 'new' }]
    expect(foldLines(lines).every((one) => one.op !== 'folded')).toBe(true)
    expect(foldLines(same(5))).toEqual([{ op: 'folded', count: 5, key: 0 }])
    expect(foldLines([])).toEqual([])
  })
})
