import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { queryClient, refreshJobs } from '../../../api/queries'
import type { Job, JobDeclaration } from '../../../api/types'
import { Dialog } from '../../../ui/Dialog'
import { useShowError } from '../../../ui/hooks'
import { message } from '../../../ui/notices'
import { FieldDiffTable } from './FieldDiffTable'
import { proposalApi } from './proposals'

export default function GiveBackDialog({ job, declaration, onClose }: { job: Job; declaration: JobDeclaration; onClose: () => void }) {
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
