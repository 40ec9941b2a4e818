import { describe, expect, it } from 'vitest'
import { executorAddress } from '../src/areas/executors/snippet'

describe('executorAddress', () => {
  it('takes what the server tells', () => {
    expect(executorAddress('jobs.example.com:7070', 'ui.example.com')).toBe('jobs.example.com:7070')
  })
  it('names the host of the page where the node listens on loopback or everywhere', () => {
    expect(executorAddress('127.0.0.1:7171', 'ui.example.com')).toBe('ui.example.com:7171')
    expect(executorAddress('0.0.0.0:7171', 'ui.example.com')).toBe('ui.example.com:7171')
    expect(executorAddress('[::]:7171', 'localhost')).toBe('localhost:7171')
    expect(executorAddress('localhost:7171', '::1')).toBe('[::1]:7171')
  })
  it('falls back to the usual port', () => {
    expect(executorAddress(undefined, 'localhost')).toBe('localhost:7070')
  })
})
