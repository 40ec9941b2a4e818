import { App } from 'antd'
import { useEffect } from 'react'
import { drawNotices } from '../ui/notices'

/** Draws what is said by notices.ts. */
export function NoticesHolder() {
  return (
    <App component={false}>
      <Connect />
    </App>
  )
}

function Connect() {
  const notices = App.useApp()
  useEffect(() => {
    drawNotices(notices)
    return () => drawNotices(undefined)
  }, [notices])
  return null
}
