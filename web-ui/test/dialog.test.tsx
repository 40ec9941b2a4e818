// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { I18nextProvider, initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { Dialog } from '../src/ui/Dialog'
import { en } from '../src/i18n/en'

beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(cleanup)

it('Enter in a field for text confirms once; lists, long texts and a dialog that works do not', () => {
  const ok = vi.fn()
  const dialog = (loading: boolean) => (
    <I18nextProvider i18n={i18next}>
      <Dialog title="New" onOk={ok} okButtonProps={{ loading }} onCancel={() => {}}>
        <form onSubmit={(event) => event.preventDefault()}>
          <input aria-label="name" />
          <input aria-label="executor" role="combobox" aria-expanded aria-controls="list" />
          <input aria-label="sure" type="checkbox" />
          <textarea aria-label="note" />
        </form>
      </Dialog>
    </I18nextProvider>
  )
  const { rerender } = render(dialog(false))
  const press = (name: string) => fireEvent.keyDown(screen.getByLabelText(name), { key: 'Enter' })
  for (const other of ['executor', 'sure', 'note']) press(other)
  expect(ok).not.toHaveBeenCalled()
  press('name')
  expect(ok).toHaveBeenCalledOnce()
  rerender(dialog(true))
  press('name')
  expect(ok).toHaveBeenCalledOnce()
})
