// What is said to the person beside the page: messages, errors and questions. What
// draws them (25 kB) comes after the first page is shown; what is said before waits.
import type { App } from 'antd'

export type Notices = ReturnType<typeof App.useApp>

let drawn: Notices | undefined
const waiting: ((notices: Notices) => void)[] = []

/** For what draws them: where they go from now on; undefined when it leaves the page. */
export function drawNotices(notices: Notices | undefined): void {
  drawn = notices
  if (notices) for (const say of waiting.splice(0)) say(notices)
}

function say(what: (notices: Notices) => void): void {
  if (drawn) what(drawn)
  else waiting.push(what)
}

export const message = {
  success: (text: string) => say((to) => void to.message.success(text)),
  info: (text: string) => say((to) => void to.message.info(text)),
  error: (text: string) => say((to) => void to.message.error(text)),
}

type Notification = Parameters<Notices['notification']['error']>[0]

export const notification = {
  success: (props: Notification) => say((to) => to.notification.success(props)),
  error: (props: Notification) => say((to) => to.notification.error(props)),
}

type Question = Parameters<Notices['modal']['confirm']>[0]

export const modal = {
  /** Resolves to the answer. */
  confirm: (props: Question) => new Promise<boolean>((resolve, reject) => say((to) => void to.modal.confirm(props).then(resolve, reject))),
  /** content is handed what closes the dialog. */
  info: ({ content, ...props }: Omit<Question, 'content'> & { content: (close: () => void) => Question['content'] }) =>
    say((to) => {
      const dialog = to.modal.info({ ...props, content: content(() => dialog.destroy()) })
    }),
}
