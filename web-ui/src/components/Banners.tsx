// What concerns the whole page: the server is silent, or newer pages exist.
import { Button } from 'antd'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { formatWithZone } from '../lib/time'
import { useConnection } from './hooks'

export function Banners() {
  const { t } = useTranslation()
  const connection = useConnection()
  const [outdated, setOutdated] = useState(false)
  useEffect(() => {
    // A chunk of an older build is gone after an upgrade of the server.
    const listen = (event: Event) => {
      event.preventDefault()
      setOutdated(true)
    }
    window.addEventListener('vite:preloadError', listen)
    return () => window.removeEventListener('vite:preloadError', listen)
  }, [])
  return (
    <div aria-live="polite">
      {outdated && (
        <div className="banner">
          <span className="grow">{t('connection.newVersion')}</span>
          <Button size="small" onClick={() => location.reload()}>
            {t('connection.reloadNow')}
          </Button>
        </div>
      )}
      {!connection.reachable && (
        <div className="banner">
          <span>{t('connection.lost')}</span>
          {connection.lastAnswerAt > 0 && <span>{t('connection.since', { time: formatWithZone(connection.lastAnswerAt) })}</span>}
        </div>
      )}
    </div>
  )
}
