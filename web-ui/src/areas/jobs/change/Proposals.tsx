// What the code of applications wants jobs to become: beside what is, to be
// accepted or declined.
import '../jobs.css'
import { useQuery } from '../../../api/useQuery'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { proposalApi, proposalQueries } from './proposals'
import { queryClient, refreshJobs } from '../../../api/queries'
import type { Proposal } from '../../../api/types'
import { ActionButton } from '../../../ui/ActionButton'
import { FieldDiffTable } from './FieldDiffTable'
import { useCan, useShowError } from '../../../ui/hooks'
import { message } from '../../../ui/notices'
import { ProposedJob } from './ProposedJob'
import { SchedulePreview } from '../SchedulePreview'
import { Blank, ErrorState, PageSkeleton } from '../../../ui/States'
import { RelativeTime } from '../../../ui/TimeText'
import { scheduleOfJob } from '../form/jobForm'

/** The list of jobs while its filter is "proposed". */
export default function Proposals() {
  const { t } = useTranslation()
  const proposals = useQuery(proposalQueries.proposals())
  return (
    <>
      <p className="muted spaced">{t('proposals.help')}</p>
      {proposals.error && !proposals.data ? (
        <ErrorState error={proposals.error} onRetry={() => void proposals.refetch()} />
      ) : !proposals.data ? (
        <PageSkeleton />
      ) : proposals.data.items.length === 0 ? (
        <Blank title={t('proposals.emptyTitle')} help={t('proposals.emptyHelp')} />
      ) : (
        <div className="stack">
          {proposals.data.items.map((one) => (
            <ProposalCard key={one.id} proposal={one} />
          ))}
        </div>
      )}
    </>
  )
}

function ProposalCard({ proposal }: { proposal: Proposal }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const canEdit = useCan('editor')
  const [busy, setBusy] = useState(false)
  // The hash says what was looked at: what the code proposes meanwhile is not
  // decided by this click.
  const decide = async (work: (id: string, hash: string) => Promise<unknown>, done: string) => {
    setBusy(true)
    try {
      await work(proposal.id, proposal.hash)
      message.success(done)
    } catch (err) {
      showError(err)
    }
    setBusy(false)
    void queryClient.invalidateQueries({ queryKey: ['proposals'] })
    refreshJobs()
  }
  const { name, job } = proposal
  return (
    <section className="card flush" aria-label={name}>
      <div className="card-head">
        <div>
          <h2>
            {job ? (
              <Link to="/jobs/$jobId" params={{ jobId: job.id }}>
                {name}
              </Link>
            ) : (
              name
            )}
          </h2>
          <p className="muted">
            {t(job ? 'proposals.change' : 'proposals.new', { executor: proposal.executor.name, version: proposal.version || '—' })} ·{' '}
            <RelativeTime at={proposal.proposedAt} />
          </p>
        </div>
        {canEdit && (
          <span className="row">
            <ActionButton disabled={busy} onClick={() => void decide(proposalApi.declineProposal, t(job ? 'proposals.declined' : 'proposals.declinedNew', { name }))} aria-label={`${t(job ? 'proposals.decline' : 'proposals.declineNew')}: ${name}`}>
              {t(job ? 'proposals.decline' : 'proposals.declineNew')}
            </ActionButton>
            <ActionButton type="primary" loading={busy} onClick={() => void decide(proposalApi.acceptProposal, t(job ? 'proposals.accepted' : 'proposals.acceptedNew', { name }))} aria-label={`${t(job ? 'proposals.accept' : 'proposals.acceptNew')}: ${name}`}>
              {t(job ? 'proposals.accept' : 'proposals.acceptNew')}
            </ActionButton>
          </span>
        )}
      </div>
      {job ? (
        <>
          <FieldDiffTable label={name} diff={proposal.changes.map((one) => ({ path: one.field, before: one.from, after: one.to }))} sides={{ before: t('proposals.now'), after: t('proposals.proposed') }} />
          {proposal.changes.some((one) => one.field.startsWith('schedule.')) && (
            <div className="proposed">
              <h3>{t('proposals.firesThen')}</h3>
              <SchedulePreview spec={scheduleOfJob(proposal.proposed.schedule)} fires={5} />
            </div>
          )}
        </>
      ) : (
        <ProposedJob spec={proposal.proposed} executor={proposal.executor} />
      )}
      <p className="muted small proposal-means">{t(job ? 'proposals.changeMeans' : 'proposals.newMeans')}</p>
    </section>
  )
}
