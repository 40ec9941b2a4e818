// What concerns the whole page: the server is silent or does not serve, it has
// newer pages, or something is under maintenance.
import { SwapOutlined, DisconnectOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import { lazy, Suspense, useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { queries } from '../api/queries'
import { useQuery } from '../api/useQuery'
import { checkBuild, loadChunk } from '../lib/chunk'
import { formatWithZone } from '../lib/time'
import { useConnection } from '../ui/hooks'

const MaintenanceNotice = lazy(() => loadChunk(() => import('./MaintenanceNotice')))

export function Banners() {
  const { t } = useTranslation()
  const { trouble, outdated, lastAnswerAt } = useConnection()
  const maintenance = useQuery(queries.me()).data?.maintenance ?? []
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
          <SwapOutlined aria-hidden />
          <span className="grow">{t('connection.newVersion')}</span>
          <Button size="small" onClick={() => location.reload()}>
            {t('connection.reloadNow')}
          </Button>
        </div>
      )}
      {maintenance.length > 0 && (
        <Suspense>
          <MaintenanceNotice items={maintenance} />
        </Suspense>
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
