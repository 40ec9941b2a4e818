// What concerns the whole page: the server is silent or does not serve, or it
// has newer pages.
import { CloudSyncOutlined, DisconnectOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import { useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { checkBuild } from '../lib/chunk'
import { formatWithZone } from '../lib/time'
import { useConnection } from './hooks'

export function Banners() {
  const { t } = useTranslation()
  const { trouble, outdated, lastAnswerAt } = useConnection()
  const was = useRef(trouble)
  useEffect(() => {
    // Away servers are often away because they are upgraded.
    if (was.current && !trouble) void checkBuild()
    was.current = trouble
  }, [trouble])
  return (
    <div aria-live="polite">
      {outdated && (
        <div className="banner">
          <CloudSyncOutlined aria-hidden />
          <span className="grow">{t('connection.newVersion')}</span>
          <Button size="small" onClick={() => location.reload()}>
            {t('connection.reloadNow')}
          </Button>
        </div>
      )}
      {trouble && (
        <div className="banner">
          <DisconnectOutlined aria-hidden />
          <span>{t(`connection.${trouble}`)}</span>
          {lastAnswerAt > 0 && <span>{t('connection.since', { time: formatWithZone(lastAnswerAt) })}</span>}
        </div>
      )}
    </div>
  )
}
