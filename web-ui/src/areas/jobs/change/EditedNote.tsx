// A job that code declares and somebody has edited since: how it differs from
// its declaration, and the way back.
import '../jobs.css'
import { useQuery } from '@tanstack/react-query'
import { Alert, Button } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { proposalQueries } from './proposals'
import type { Job } from '../../../api/types'
import { settingLabel } from '../jobWords'
import { formatWithZone } from '../../../lib/time'
import { useCan } from '../../../ui/hooks'
import { later } from '../../../ui/later'

const GiveBackDialog = later(() => import('./GiveBackDialog'))

export function EditedNote({ job }: { job: Job }) {
  const { t } = useTranslation()
  const canEdit = useCan('editor')
  const [asking, setAsking] = useState(false)
  const { data } = useQuery(proposalQueries.declaration(job.id, job.revision))
  if (!data?.editedAt) return null // nothing is known of the declaration
  const fields = data.changes.map((one) => settingLabel(one.field, t) ?? one.field).join(t('jobs.giveBack.comma'))
  return (
    <>
      <Alert
        type="info"
        showIcon
        className="below-3"
        title={t('jobs.giveBack.edited', { when: formatWithZone(data.editedAt), who: data.editedBy })}
        description={
          <>
            {fields ? t('jobs.giveBack.differs', { version: data.version || '—', fields }) : t('jobs.giveBack.same', { version: data.version || '—' })}{' '}
            {t(job.declared?.ownership === 'propose' ? 'jobs.giveBack.proposed' : 'jobs.giveBack.notApplied')}
          </>
        }
        action={
          canEdit &&
          data.giveBack && (
            <Button size="small" onClick={() => setAsking(true)}>
              {t('jobs.giveBack.action')}
            </Button>
          )
        }
      />
      {asking && <GiveBackDialog job={job} declaration={data} onClose={() => setAsking(false)} />}
    </>
  )
}
