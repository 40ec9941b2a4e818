// A state is an icon, a word and a colour, never a colour alone. One palette
// for lists, headers and pictures.
import { useTranslation } from 'react-i18next'
import { serverNow } from '../lib/connection'
import { StateIcon, type IconName } from './StateIcon'
import type { Backfill, ClusterNode, Delivery, Incident, InstanceState, JobState, RunState, Tenant, Timer, Verdict } from '../api/types'

type Tone = 'success' | 'running' | 'failed' | 'timeout' | 'retrying' | 'queued' | 'skipped' | 'killed' | 'lost'
type Look = readonly [tone: Tone, icon: IconName]

const RUN: Record<RunState, Look> = {
  due: ['queued', 'dots'],
  offered: ['queued', 'arrow'],
  running: ['running', 'play'],
  cancelling: ['killed', 'stopping'],
  retry_wait: ['retrying', 'again'],
  succeeded: ['success', 'check'],
  failed: ['failed', 'cross'],
  timed_out: ['timeout', 'timer'],
  cancelled: ['killed', 'stop'],
  lost: ['lost', 'question'],
  missed: ['skipped', 'skip'],
  discarded: ['skipped', 'ban'],
  excluded: ['queued', 'ban'],
}
const PLANNED: Look = ['queued', 'clock']
const JOB: Record<JobState, Look> = { enabled: ['success', 'dot'], paused: ['skipped', 'pause'] }
const INSTANCE: Record<InstanceState, Look> = {
  online: ['success', 'dot'],
  draining: ['skipped', 'half'],
  silent: ['lost', 'question'],
  gone: ['queued', 'ring'],
}
const DELIVERY: Record<Delivery['state'], Look> = {
  pending: ['queued', 'dots'],
  delivered: ['success', 'check'],
  failed: ['failed', 'cross'],
}
const INCIDENT: Record<Incident['state'], Look> = {
  open: ['failed', 'dot'],
  acknowledged: ['skipped', 'half'],
  resolved: ['success', 'check'],
}

const VERDICT: Record<Verdict, Look> = {
  chosen: ['success', 'check'],
  refused: ['failed', 'cross'],
  not_chosen: ['queued', 'ring'],
  no_handler: ['skipped', 'ban'],
  label_mismatch: ['skipped', 'ban'],
  not_connected: ['queued', 'dashed'],
  silent: ['lost', 'question'],
  draining: ['skipped', 'half'],
  refusing: ['failed', 'ban'],
  full: ['timeout', 'stop'],
  has_room: ['success', 'dot'],
}
const BACKFILL: Record<Backfill['state'], Look> = {
  dry_run: ['queued', 'clock'],
  running: ['running', 'play'],
  done: ['success', 'check'],
  cancelled: ['killed', 'stop'],
}
const NODE: Record<ClusterNode['state'], Look> = { live: ['success', 'dot'], leaving: ['skipped', 'half'], silent: ['lost', 'question'] }
const TENANT: Record<Tenant['state'], Look> = {
  enabled: ['success', 'dot'],
  disabled: ['skipped', 'pause'],
  deleted: ['failed', 'cross'],
  moving: ['running', 'arrow'],
  moved: ['queued', 'arrow'],
}

const MOVING: ReadonlySet<RunState> = new Set(['running', 'cancelling'])

/** Name of a run state's colour: a variable --tone, and a class st-tone. */
export function runTone(state: RunState): string {
  return (RUN[state] ?? ['queued'])[0]
}

function Chip({ look, word, moving, big }: { look: Look | undefined; word: string; moving?: boolean; big?: boolean }) {
  const [tone, icon] = look ?? (['queued', 'ring'] as const)
  return (
    <span className={`state st-${tone}${big ? ' state-big' : ''}`}>
      <span className={`state-icon${moving ? ' pulse' : ''}`} aria-hidden="true">
        <StateIcon name={icon} />
      </span>
      {word}
    </span>
  )
}

interface RunChipProps {
  state: RunState
  /** Where it is known: a run whose fire time is still to come is planned, not due. */
  fireAt?: string
  /** It has ended, but its handler still runs. */
  lingers?: boolean
  big?: boolean
}

export function RunStateChip({ state, fireAt, lingers, big }: RunChipProps) {
  const { t } = useTranslation()
  if (lingers) {
    return (
      <span className="row tight">
        <Chip look={RUN[state]} word={t(`runs.state.${state}`)} big={big} />
        <Chip look={['timeout', 'stopping']} word={t('runs.lingers')} moving big={big} />
      </span>
    )
  }
  if (state === 'due' && fireAt && Date.parse(fireAt) > serverNow()) return <Chip look={PLANNED} word={t('runs.planned')} big={big} />
  return <Chip look={RUN[state]} word={t(`runs.state.${state}`)} moving={MOVING.has(state)} big={big} />
}

/** Of a timer: until its time comes it has no run. */
export function TimerStateChip({ state }: { state: Timer['state'] }) {
  const { t } = useTranslation()
  return state === 'pending' ? <Chip look={PLANNED} word={t('timers.pending')} /> : <RunStateChip state={state} />
}

export function JobStateChip({ state }: { state: JobState }) {
  const { t } = useTranslation()
  return <Chip look={JOB[state]} word={t(`jobs.state.${state}`)} />
}

export function InstanceStateChip({ state }: { state: InstanceState }) {
  const { t } = useTranslation()
  return <Chip look={INSTANCE[state]} word={t(`instance.${state}`)} />
}

export function DeliveryStateChip({ state }: { state: Delivery['state'] }) {
  const { t } = useTranslation()
  return <Chip look={DELIVERY[state]} word={t(`deliveries.state.${state}`)} />
}

export function TenantStateChip({ state }: { state: Tenant['state'] }) {
  const { t } = useTranslation()
  return <Chip look={TENANT[state]} word={t(`tenants.state.${state}`)} />
}

export function IncidentStateChip({ state }: { state: Incident['state'] }) {
  const { t } = useTranslation()
  return <Chip look={INCIDENT[state]} word={t(`alerts.state.${state}`)} />
}

/** Why an instance runs something, or does not. */
export function VerdictChip({ verdict }: { verdict: Verdict }) {
  const { t } = useTranslation()
  return <Chip look={VERDICT[verdict]} word={t(`explain.verdicts.${verdict}`)} />
}

export function BackfillStateChip({ state }: { state: Backfill['state'] }) {
  const { t } = useTranslation()
  return <Chip look={BACKFILL[state]} word={t(`backfill.states.${state}`)} moving={state === 'running'} />
}

export function NodeStateChip({ state }: { state: ClusterNode['state'] }) {
  const { t } = useTranslation()
  return <Chip look={NODE[state]} word={t(`cluster.state.${state}`)} />
}

/** How many instances of an executor are online; none is a warning. */
export function OnlineCount({ count }: { count: number }) {
  const { t } = useTranslation()
  return <Chip look={count > 0 ? INSTANCE.online : INSTANCE.silent} word={count > 0 ? t('jobs.list.online', { count }) : t('jobs.list.offline')} />
}
