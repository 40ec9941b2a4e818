// A state is an icon, a word and a colour, never a colour alone. One palette
// for lists, headers and the timeline.
import { useTranslation } from 'react-i18next'
import { serverNow } from '../lib/connection'
import type { Backfill, ClusterNode, Delivery, Incident, InstanceState, JobState, RunState, Tenant, Timer, Verdict } from '../api/types'

type Tone = 'success' | 'running' | 'failed' | 'timeout' | 'retrying' | 'queued' | 'skipped' | 'killed' | 'lost'
type Look = readonly [tone: Tone, icon: string]

/** Drawn, since its character is an empty box on many systems. */
const CLOCK = 'clock'

const RUN: Record<RunState, Look> = {
  due: ['queued', '…'],
  offered: ['queued', '→'],
  running: ['running', '▶'],
  cancelling: ['killed', '◧'],
  retry_wait: ['retrying', '↻'],
  succeeded: ['success', '✓'],
  failed: ['failed', '✕'],
  timed_out: ['timeout', CLOCK],
  cancelled: ['killed', '■'],
  lost: ['lost', '?'],
  missed: ['skipped', '⤼'],
  discarded: ['skipped', '⊘'],
  excluded: ['queued', '⊘'],
}
const PLANNED: Look = ['queued', '◷']
const JOB: Record<JobState, Look> = { enabled: ['success', '●'], paused: ['skipped', '‖'] }
const INSTANCE: Record<InstanceState, Look> = {
  online: ['success', '●'],
  draining: ['skipped', '◐'],
  silent: ['lost', '?'],
  gone: ['queued', '○'],
}
const DELIVERY: Record<Delivery['state'], Look> = {
  pending: ['queued', '…'],
  delivered: ['success', '✓'],
  failed: ['failed', '✕'],
}
const INCIDENT: Record<Incident['state'], Look> = {
  open: ['failed', '●'],
  acknowledged: ['skipped', '◐'],
  resolved: ['success', '✓'],
}

const VERDICT: Record<Verdict, Look> = {
  chosen: ['success', '✓'],
  refused: ['failed', '✕'],
  not_chosen: ['queued', '○'],
  no_handler: ['skipped', '⊘'],
  label_mismatch: ['skipped', '⊘'],
  not_connected: ['queued', '◌'],
  silent: ['lost', '?'],
  draining: ['skipped', '◐'],
  refusing: ['failed', '⊘'],
  full: ['timeout', '■'],
  has_room: ['success', '●'],
}
const BACKFILL: Record<Backfill['state'], Look> = {
  dry_run: ['queued', '◷'],
  running: ['running', '▶'],
  done: ['success', '✓'],
  cancelled: ['killed', '■'],
}
const NODE: Record<ClusterNode['state'], Look> = { live: ['success', '●'], leaving: ['skipped', '◐'], silent: ['lost', '?'] }
const TENANT: Record<Tenant['state'], Look> = {
  enabled: ['success', '●'],
  disabled: ['skipped', '‖'],
  deleted: ['failed', '✕'],
  moving: ['running', '→'],
  moved: ['queued', '→'],
}

const MOVING: ReadonlySet<RunState> = new Set(['running', 'cancelling'])

/** Name of a run state's colour: a variable --tone, and a class st-tone. */
export function runTone(state: RunState): string {
  return (RUN[state] ?? ['queued'])[0]
}

/** CSS colour of a run state, for the timeline. */
export function runColour(state: RunState): string {
  return `var(--${runTone(state)})`
}

function Clock() {
  return (
    <svg className="state-drawn" viewBox="0 0 14 14" fill="none" stroke="currentColor" strokeWidth={1.5}>
      <circle cx={7} cy={7.5} r={5} />
      <path d="M7 4.5v3l2 1.5M5.5 1h3" />
    </svg>
  )
}

function Chip({ look, word, moving, big }: { look: Look | undefined; word: string; moving?: boolean; big?: boolean }) {
  const [tone, icon] = look ?? (['queued', '·'] as const)
  return (
    <span className={`state st-${tone}${big ? ' state-big' : ''}`}>
      <span className={`state-icon${moving ? ' pulse' : ''}`} aria-hidden="true">
        {icon === CLOCK ? <Clock /> : icon}
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
        <Chip look={['timeout', '◧']} word={t('runs.lingers')} moving big={big} />
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
