// Where the keyboard is: after a page change on the heading of the new page,
// after a dialog back on what opened it.

let leftFrom: Element | null | undefined

/** A page is left for another one. */
export function leavePage(): void {
  leftFrom = document.activeElement
}

/** A page is there. Takes the focus, unless a person has moved it meanwhile. */
export function arriveAt(heading: HTMLElement | null): void {
  const { activeElement, body } = document
  if (leftFrom !== undefined && (activeElement === leftFrom || activeElement === body)) heading?.focus({ preventScroll: true })
  leftFrom = undefined
}

// What opened the outermost dialog: one that follows another in its place is
// opened by a button that has gone with the first.
let outermost: Element | null = null

/** Called before a dialog takes the focus. Returns what gives the focus back when it is gone. */
export function rememberFocus(): () => void {
  const opener = document.activeElement
  if (!opener?.closest('[role=dialog]')) outermost = opener
  const candidates = [opener, outermost]
  return () => {
    const { activeElement, body } = document
    // Who has put the focus somewhere else means it.
    if (activeElement && activeElement !== body) return
    const back = candidates.find((one) => one instanceof HTMLElement && one !== body && one.isConnected) ?? document.querySelector('main h1')
    if (back instanceof HTMLElement) back.focus({ preventScroll: true })
  }
}

const FIELDS = 'input:not([type=hidden], :disabled), textarea:not(:disabled), [contenteditable=true]'

// Editors are replaced when their code is there; a picker opens its calendar.
const NOT_FIRST = '.editor-box, .ant-picker'

/** The first field, unless the focus is in one already. */
export function focusFirstField(within: HTMLElement | null): void {
  if (!within || within.contains(document.activeElement)) return
  const fields = [...within.querySelectorAll<HTMLElement>(FIELDS)]
  fields.find((one) => !one.closest(NOT_FIRST))?.focus()
}
