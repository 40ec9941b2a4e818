// @vitest-environment jsdom
import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, cleanup, render, screen } from '@testing-library/react'
import { afterEach, expect, it } from 'vitest'
import { failureLog, useQuery } from '../src/api/useQuery'

afterEach(cleanup)

it('keeps an error until an answer comes, while it is asked again', async () => {
  const client = new QueryClient({ queryCache: new QueryCache(failureLog), defaultOptions: { queries: { retry: false } } })
  let answer: (value: string) => void = () => {}
  let refuse: (err: Error) => void = () => {}
  const seen: string[] = []
  function Shown({ id }: { id: string }) {
    const query = useQuery({
      queryKey: ['thing', id],
      queryFn: () =>
        new Promise<string>((resolve, reject) => {
          answer = resolve
          refuse = reject
        }),
      placeholderData: (before: string | undefined) => before,
    })
    const text = query.error ? `error ${query.error.message}` : (query.data ?? 'loading')
    seen.push(text)
    return (
      <>
        <p>{text}</p>
        <button onClick={() => void query.refetch()}>again</button>
      </>
    )
  }
  const tree = (id: string) => (
    <QueryClientProvider client={client}>
      <Shown id={id} />
    </QueryClientProvider>
  )
  const { rerender } = render(tree('a'))
  await act(async () => answer('rows of a'))
  await screen.findByText('rows of a')
  rerender(tree('b'))
  await act(async () => refuse(new Error('one')))
  await screen.findByText('error one')
  seen.length = 0
  await act(async () => screen.getByText('again').click())
  await act(async () => refuse(new Error('two')))
  await screen.findByText('error two')
  await act(async () => screen.getByText('again').click())
  expect(seen.filter((text) => !text.startsWith('error')), 'neither skeletons nor the rows of another question').toEqual([])
  await act(async () => answer('rows of b'))
  await screen.findByText('rows of b')
})
