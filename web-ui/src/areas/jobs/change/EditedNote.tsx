// A job that code declares and somebody has edited since: how it differs from
// its declaration, and the way back.
import '../jobs.css'
import { useQuery } from '@tanstack/react-query'
import { Alert, Button } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { proposalApi, proposalQueries } from './proposals'
import { queryClient, refreshJobs } from '../../../api/queries'
import type { Job, JobDeclaration } from '../../../api/types'
import { settingLabel } from '../jobWords'
import { formatWithZone } from '../../../lib/time'
import { Dialog } from '../../../ui/Dialog'
import { FieldDiffTable } from './FieldDiffTable'
import { useCan, useShowError } from '../../../ui/hooks'
import { message } from '../../../ui/notices'

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

function GiveBackDialog({ job, declaration, onClose }: { job: Job; declaration: JobDeclaration; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [busy, setBusy] = useState(false)
  // The hash says what was looked at: another declaration is not applied by this click.
  const giveBack = async () => {
    setBusy(true)
    try {
      await proposalApi.giveBackJob(job.id, declaration.hash)
      message.success(t('jobs.giveBack.done', { name: job.name }))
      onClose()
    } catch (err) {
      showError(err)
    }
    setBusy(false)
    void queryClient.invalidateQueries({ queryKey: ['proposals'] })
    refreshJobs()
  }
  return (
    <Dialog title={t('jobs.giveBack.title', { name: job.name })} okText={t('jobs.giveBack.action')} cancelText={t('action.cancel')} confirmLoading={busy} onOk={() => void giveBack()} onCancel={onClose} width={720}>
      <p>{t(job.declared?.ownership === 'propose' ? 'jobs.giveBack.meansProposed' : 'jobs.giveBack.means')}</p>
      {declaration.changes.length > 0 ? (
        <FieldDiffTable
          label={t('jobs.giveBack.changes')}
          diff={declaration.changes.map((one) => ({ path: one.field, before: one.from, after: one.to }))}
          sides={{ before: t('proposals.now'), after: t('jobs.giveBack.declared') }}
        />
      ) : (
        <p className="muted">{t('jobs.giveBack.noChange')}</p>
      )}
    </Dialog>
  )
}
