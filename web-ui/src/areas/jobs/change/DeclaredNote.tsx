import { useQuery } from '../../../api/useQuery'
import { Link } from '@tanstack/react-router'
import { Alert } from 'antd'
import { useTranslation } from 'react-i18next'
import { proposalQueries } from './proposals'
import type { Job } from '../../../api/types'
import { EditedNote } from './EditedNote'

/** Who decides about a job that code declares; nothing for all other jobs. */
export function DeclaredNote({ job }: { job: Job }) {
  const { t } = useTranslation()
  const proposals = useQuery(proposalQueries.proposals())
  const { declared } = job
  if (!declared) return null
  const at = { executor: declared.executor.name, version: declared.version || '—', handler: job.handler }
  if (proposals.data?.items.some((one) => one.job?.id === job.id)) {
    return (
      <Alert
        type="info"
        showIcon
        className="below-3"
        title={
          <>
            {t('proposals.pendingHere')} <Link to="/jobs" search={{ proposed: '1' }}>{t('proposals.look')}</Link>
          </>
        }
      />
    )
  }
  if (job.source === 'console' && !declared.gone && declared.ownership !== 'console') return <EditedNote job={job} />
  if (declared.gone) return <Alert type="warning" showIcon className="below-3" title={t('jobs.detail.declaredGone', at)} />
  if (!declared.locked) return null
  return <Alert type="info" showIcon className="below-3" title={t('jobs.detail.declaredCode', at)} />
}
