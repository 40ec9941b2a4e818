import { afterEach, expect, it, vi } from 'vitest'
import { api } from '../src/api/endpoints'
import { queryClient } from '../src/api/queries'
import type { RunDetail } from '../src/api/types'
import { lastGoodQuery } from '../src/areas/runs/lastGood'

afterEach(() => {
  vi.restoreAllMocks()
  queryClient.clear()
})

const run = (id: string) => ({ id, jobId: '7', state: 'succeeded', fireAt: '2026-11-30T10:00:00Z', claimedAt: '2026-11-30T10:00:00.040Z' }) as RunDetail

/** The server has these runs of the job, the newest first. */
async function lastGoodOf(one: RunDetail, ...runs: RunDetail[]) {
  vi.spyOn(api, 'runs').mockImplementation((query) => Promise.resolve({ items: runs.slice(0, query.limit), nextCursor: null }))
  vi.spyOn(api, 'run').mockImplementation((id) => Promise.resolve(run(id)))
  return queryClient.fetchQuery(lastGoodQuery(one))
}

it('is the run before, also when the list begins with this run, whose fire time is before it was planned', async () => {
  expect((await lastGoodOf(run('3'), run('3'), run('2'), run('1')))?.id).toBe('2')
  queryClient.clear()
  expect((await lastGoodOf(run('3'), run('2'), run('1')))?.id).toBe('2')
})
it('is none if only this run went well', async () => {
  expect(await lastGoodOf(run('3'), run('3'))).toBeNull()
})
