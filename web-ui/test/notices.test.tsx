// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { message, modal } from '../src/ui/notices'
import { NoticesHolder } from '../src/shell/NoticesHolder'

beforeAll(() => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
})
afterEach(cleanup)

it('what is said and asked before anything can draw it waits, and is said once', async () => {
  message.success('saved')
  const answer = modal.confirm({ title: 'Go on?', okText: 'Yes', cancelText: 'No' })
  const first = render(<NoticesHolder />)
  await screen.findByText('saved')
  fireEvent.click(screen.getByRole('button', { name: 'action.close' }))
  fireEvent.click(await screen.findByRole('button', { name: 'Yes' }))
  expect(await answer).toBe(true)

  expect(screen.queryByText('saved')).toBeNull()
  first.unmount()
  message.info('meanwhile')
  render(<NoticesHolder />)
  await screen.findByText('meanwhile')
  expect(screen.queryByText('saved')).toBeNull()
})

it('an information is closed by what stands in it', async () => {
  render(<NoticesHolder />)
  modal.info({ title: 'In use', content: (close) => <button onClick={close}>leave</button> })
  fireEvent.click(await screen.findByRole('button', { name: 'leave' }))
  await waitFor(() => expect(document.querySelector('.ant-modal-confirm:not(.ant-zoom-leave)')).toBeNull())
})
