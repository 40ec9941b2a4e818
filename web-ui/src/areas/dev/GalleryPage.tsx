// Every picture and every state from fixed data, for people who change them and for the
// screenshots of the browser tests. No page leads here.
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import type { InstanceState, RunState, Verdict } from '../../api/types'
import { Band } from '../../charts/Band'
import { Gantt } from '../../charts/Gantt'
import { HourBars } from '../../charts/HourBars'
import { Peal } from '../../charts/Peal'
import { Page } from '../../ui/Page'
import { BackfillStateChip, DeliveryStateChip, IncidentStateChip, InstanceStateChip, JobStateChip, NodeStateChip, OnlineCount, RunStateChip, TenantStateChip, TimerStateChip, VerdictChip } from '../../ui/StateChip'
import { ICON_NAMES, StateIcon } from '../../ui/StateIcon'
import { allBad, BEGIN, course, dots, durations, END, halfBad, lateness, mostlyGood, oneBucket, PEAL_STATES, shards, strip, WEEK_END } from './fixture'

const ZONE = 'Europe/Berlin'
const INSTANCES: readonly InstanceState[] = ['online', 'draining', 'silent', 'gone']
const VERDICTS: readonly Verdict[] = ['chosen', 'refused', 'not_chosen', 'no_handler', 'label_mismatch', 'not_connected', 'silent', 'draining', 'refusing', 'full', 'has_room']
const FAR = '2999-01-01T00:00:00Z'
const nothing = () => {}

export function GalleryPage() {
  const { t } = useTranslation()
  return (
    <Page title={t('gallery.title')} help={t('gallery.help')}>
      <div className="stack">
        <States />
        <Part name="Peal">
          <Peal runs={strip} name="nightly" zone={ZONE} large />
          <Peal runs={strip.slice(0, 20)} name="nightly" zone={ZONE} />
        </Part>
        <Part name="HourBars">
          <HourBars data={mostlyGood} label="1 %" zone={ZONE} onOpen={nothing} onSelect={nothing} selected={[BEGIN + 10_800_000, BEGIN + 18_000_000]} />
          <HourBars data={halfBad} label="50 %" zone={ZONE} onOpen={nothing} />
          <HourBars data={allBad} label="100 %" zone={ZONE} />
          <HourBars data={{ ...allBad, items: [], total: { ...allBad.total, failed: 0 } }} label={t('gallery.empty')} zone={ZONE} height={90} />
        </Part>
        <Part name="Band">
          <Band label={t('charts.lateness')} steps={lateness} from={BEGIN} to={END} zone={ZONE} bound={{ ms: 1_000, name: t('charts.latenessBound') }} />
          <Band label={t('charts.durations')} steps={durations} dots={dots} from={BEGIN} to={WEEK_END} zone={ZONE} height={200} bound={{ ms: 60_000, name: t('charts.timeout') }} onOpen={nothing} onSelect={nothing} />
          <Band label="≈" steps={oneBucket} from={BEGIN} to={WEEK_END} zone={ZONE} height={110} />
          <Band label={t('gallery.empty')} steps={[]} from={BEGIN} to={END} zone={ZONE} height={90} />
        </Part>
        <Part name="Gantt">
          <Gantt label={t('charts.gantt')} rows={course} zone={ZONE} start={course[0]?.segments[0]?.from ?? 0} onOpen={nothing} />
          <Gantt label={t('runs.shards.title')} rows={shards} zone={ZONE} start={shards[0]?.segments[0]?.from ?? 0} onOpen={nothing} />
        </Part>
      </div>
    </Page>
  )
}

function Part({ name, children }: { name: string; children: ReactNode }) {
  return (
    <section className="card stack" aria-label={name}>
      <h2>{name}</h2>
      {children}
    </section>
  )
}

function States() {
  const { t } = useTranslation()
  const all: ReactNode[] = [
    ...PEAL_STATES.map((state: RunState) => <RunStateChip key={state} state={state} />),
    <RunStateChip key="one-1" state="due" fireAt={FAR} />,
    <RunStateChip key="one-2" state="timed_out" lingers />,
    <RunStateChip key="one-3" state="succeeded" big />,
    <TimerStateChip key="one-4" state="pending" />,
    <JobStateChip key="one-5" state="enabled" />,
    <JobStateChip key="one-6" state="paused" />,
    ...INSTANCES.map((state) => <InstanceStateChip key={state} state={state} />),
    <OnlineCount key="one-7" count={3} />,
    <OnlineCount key="one-8" count={0} />,
    ...(['pending', 'delivered', 'failed'] as const).map((state) => <DeliveryStateChip key={state} state={state} />),
    ...(['open', 'acknowledged', 'resolved'] as const).map((state) => <IncidentStateChip key={state} state={state} />),
    ...VERDICTS.map((verdict) => <VerdictChip key={verdict} verdict={verdict} />),
    ...(['dry_run', 'running', 'done', 'cancelled'] as const).map((state) => <BackfillStateChip key={state} state={state} />),
    ...(['live', 'leaving', 'silent'] as const).map((state) => <NodeStateChip key={state} state={state} />),
    ...(['enabled', 'disabled', 'deleted', 'moving', 'moved'] as const).map((state) => <TenantStateChip key={state} state={state} />),
    ...ICON_NAMES.map((name) => (
      <span key={name} className="state">
        <StateIcon name={name} /> <span className="mono muted">{name}</span>
      </span>
    )),
  ]
  return (
    <section className="card" aria-label={t('gallery.states')}>
      <h2>{t('gallery.states')}</h2>
      <div className="facts">
        {all.map((chip, i) => (
          <div key={i}>{chip}</div>
        ))}
      </div>
    </section>
  )
}
