// Messages, errors and questions beside the page. The shell draws messages itself, so that an error
// can be shown without network. The dialogs of the library (40 kB) come with the first question.
import type { Modal } from 'antd'
import type { ReactNode } from 'react'

export type Dialogs = ReturnType<typeof Modal.useModal>[0]

export interface Toast {
  id: number
  look: 'success' | 'info' | 'error'
  title: ReactNode
  description?: ReactNode
  actions?: ReactNode
  /** How long it is shown; it stays while its button is pointed at or has the focus. */
  seconds: number
}

const MESSAGE_SECONDS = 3
const NOTIFICATION_SECONDS = 5
/** The oldest message gives way to a new one. */
const MOST_TOASTS = 5

interface State {
  toasts: readonly Toast[]
  /** Something was asked, or will be soon: the dialogs are to be loaded. */
  asked: boolean
}

let state: State = { toasts: [], asked: false }
let lastId = 0
const listeners = new Set<() => void>()

export const getNotices = () => state

export function subscribeNotices(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

function set(change: Partial<State>): void {
  state = { ...state, ...change }
  for (const listener of listeners) listener()
}

const say = (toast: Omit<Toast, 'id'>) => set({ toasts: [...state.toasts, { ...toast, id: ++lastId }].slice(-MOST_TOASTS) })

export const dismiss = (id: number) => set({ toasts: state.toasts.filter((one) => one.id !== id) })

const brief = (look: Toast['look']) => (title: string) => say({ look, title, seconds: MESSAGE_SECONDS })

export const message = { success: brief('success'), info: brief('info'), error: brief('error') }

type Notification = Pick<Toast, 'title' | 'description' | 'actions'> & Partial<Pick<Toast, 'seconds'>>

const long = (look: Toast['look']) => (toast: Notification) => say({ look, seconds: NOTIFICATION_SECONDS, ...toast })

export const notification = { success: long('success'), error: long('error') }

let dialogs: Dialogs | undefined
const waiting: ((dialogs: Dialogs) => void)[] = []

/** For what draws the questions: where they go from now on; undefined when it leaves the page. */
export function drawDialogs(drawn: Dialogs | undefined): void {
  dialogs = drawn
  if (drawn) for (const ask of waiting.splice(0)) ask(drawn)
}

/** Loads the dialogs before the first question, which may come without network. */
export function prepareDialogs(): void {
  if (!state.asked) set({ asked: true })
}

function ask(what: (dialogs: Dialogs) => void): void {
  if (dialogs) what(dialogs)
  else waiting.push(what)
  prepareDialogs()
}

type Question = Parameters<Dialogs['confirm']>[0]

export const modal = {
  /** Resolves to the answer. A second question while the first one is loaded is the same click again; its answer is no. */
  confirm: (props: Question) => (waiting.length > 0 ? Promise.resolve(false) : new Promise<boolean>((resolve, reject) => ask((to) => void to.confirm(props).then(resolve, reject)))),
  /** content is handed what closes the dialog. */
  info: ({ content, ...props }: Omit<Question, 'content'> & { content: (close: () => void) => Question['content'] }) =>
    ask((to) => {
      const dialog = to.info({ ...props, content: content(() => dialog.destroy()) })
    }),
}
