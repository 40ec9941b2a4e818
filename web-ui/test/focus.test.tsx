// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { Button, ConfigProvider } from 'antd'
import { useState } from 'react'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { Dialog } from '../src/ui/Dialog'
import { Page } from '../src/ui/Page'
import { leavePage } from '../src/lib/focus'

beforeAll(() => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
})
beforeEach(() => render(<Page title="of the last test">-</Page>))
afterEach(cleanup)

function Opener() {
  const [open, setOpen] = useState<'' | 'first' | 'second'>('')
  return (
    <>
      <Button onClick={() => setOpen('first')}>Opener</Button>
      {open === 'first' && (
        <Dialog title="First" onCancel={() => setOpen('')} onOk={() => setOpen('second')} okText="Next">
          <input aria-label="field" />
        </Dialog>
      )}
      {open === 'second' && (
        <Dialog title="Second" onCancel={() => setOpen('')}>
          nothing to fill in
        </Dialog>
      )}
    </>
  )
}

describe('the focus', () => {
  const focused = (element: HTMLElement) => waitFor(() => expect(document.activeElement).toBe(element))
  const opened = () => {
    render(
      <ConfigProvider theme={{ token: { motion: false } }}>
        <Opener />
      </ConfigProvider>,
    )
    const opener = screen.getByRole('button', { name: 'Opener' })
    opener.focus()
    fireEvent.click(opener)
    return opener
  }

  it('begins in the first field of a dialog, and is given back to what opened it', async () => {
    const opener = opened()
    await focused(await screen.findByLabelText('field'))
    fireEvent.click(screen.getByRole('button', { name: 'Cancel' }))
    await focused(opener)
  })

  it('is given back by a dialog that took the place of another', async () => {
    const opener = opened()
    const next = await screen.findByRole('button', { name: 'Next' })
    next.focus()
    fireEvent.click(next)
    await screen.findByText('nothing to fill in')
    fireEvent.click(screen.getByRole('button', { name: 'Cancel' }))
    await focused(opener)
  })

  it('goes to the heading of a page that follows another, and of one that follows with the same heading', () => {
    const view = render(<Page title="One">-</Page>)
    expect(document.activeElement, 'nobody left a page').toBe(document.body)
    leavePage()
    view.rerender(<Page title="Two">-</Page>)
    expect(document.activeElement?.textContent).toBe('Two')
  })

  it('stays where a person has put it meanwhile', () => {
    render(<button type="button">elsewhere</button>)
    leavePage()
    screen.getByRole('button', { name: 'elsewhere' }).focus()
    render(<Page title="One">-</Page>)
    expect(document.activeElement?.textContent).toBe('elsewhere')
  })
})
