package domain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var shardsAt = time.UnixMilli(1_800_000_000_000).UTC()

func spreadable(s Sharding) (*Execution, *JobSpec) {
	return &Execution{ID: 7, TenantID: 1, JobID: 2, Revision: 3, Executor: 4, Cause: CauseSchedule, FireAt: shardsAt, State: Due, MaxAttempts: 2, Instance: 9},
		&JobSpec{Handler: "h", Sharding: s, Blocking: BlockSerial, Schedule: ScheduleSpec{Kind: ScheduleFixedDelay}}
}

func counting() func() (ExecutionID, error) {
	id := ExecutionID(100)
	return func() (ExecutionID, error) { id++; return id, nil }
}

func TestSpread(t *testing.T) {
	e, spec := spreadable(Sharding{Mode: ShardFixed, Shards: 3, Timeout: time.Minute})
	e.Trace = ParseTrace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	parts, err := e.AsParent().Spread(shardsAt, spec, nil, counting())
	require.NoError(t, err)
	require.Len(t, parts, 3)
	require.Equal(t, []any{Running, StageShards, int64(1), 3, InstanceID(0), shardsAt, shardsAt.Add(time.Minute), shardsAt.Add(FamilyCheck)},
		[]any{e.State, e.Stage, e.Fence, e.Shards, e.Instance, e.StartedAt, e.Deadline, e.WakeAt})
	require.Equal(t, "part:7:1:00002", parts[2].OccurrenceKey)
	require.Equal(t, Execution{
		ID: 103, Parent: 7, Part: PartShard, Shard: 2, Shards: 3, TenantID: 1, JobID: 2, Revision: 3, Executor: 4, Cause: CauseSchedule, FireAt: shardsAt,
		OccurrenceKey: "part:7:1:00002", State: Due, MaxAttempts: 2, NotBefore: shardsAt, PlannedAt: shardsAt, WakeAt: shardsAt.Add(PickupGrace),
		ExpireAt: shardsAt.Add(DefaultDispatchTimeout), LogLines: -1, Trace: e.Trace,
	}, parts[2])
	require.Equal(t, e.Trace.ID(), PartTrace(&parts[2]).ID())
	places := map[Trace]bool{e.Trace: true}
	for _, p := range parts {
		p.Fence = 1
		places[PartTrace(&p)], places[AttemptTrace(&p)] = true, true
	}
	require.Len(t, places, 1+2*len(parts), "each part and its attempt has a place of its own below the parent")
	from, below := PartKeys(7)
	for _, p := range parts {
		require.True(t, from <= p.OccurrenceKey && p.OccurrenceKey < below)
	}
	require.False(t, e.OccupiesInstance(), "no instance has it")
	_, err = e.AsParent().Spread(shardsAt, spec, nil, counting())
	require.Equal(t, CodeIllegalMove, CodeOf(err), "once")

	early, spec := spreadable(Sharding{Mode: ShardFixed, Shards: 3})
	early.NotBefore = shardsAt.Add(1)
	_, err = early.AsParent().Spread(shardsAt, spec, nil, counting())
	require.Equal(t, CodeIllegalMove, CodeOf(err))

	nobody, spec := spreadable(Sharding{Mode: ShardBroadcast})
	_, err = nobody.AsParent().Spread(shardsAt, spec, nil, counting())
	require.Equal(t, CodeIllegalMove, CodeOf(err))
	require.Equal(t, Due, nobody.State)
}

func TestSpreadAgainWhatFailed(t *testing.T) {
	e, spec := spreadable(Sharding{Mode: ShardBroadcast, OnGone: GoneMiss})
	e.Shards, e.Picks = 5, []ShardPick{{Index: 1, Instance: 11}, {Index: 4, Instance: 12}}
	parts, err := e.AsParent().Spread(shardsAt, spec, []InstanceID{10, 11}, counting())
	require.NoError(t, err)
	require.Len(t, parts, 2)
	require.Equal(t, [2]InstanceID{11, 0}, [2]InstanceID{parts[0].Bound, parts[1].Bound}, "an instance that has gone is not waited for")
	require.Equal(t, [4]int{1, 5, 4, 5}, [4]int{parts[0].Shard, parts[0].Shards, parts[1].Shard, parts[1].Shards})
}

func TestForPart(t *testing.T) {
	spec := &JobSpec{Handler: "h", Blocking: BlockSerial, Routing: RouteFirst, Schedule: ScheduleSpec{Kind: ScheduleFixedDelay}, Sharding: Sharding{Mode: ShardBroadcast, OnGone: GoneMove, Before: "b", After: "a"}}
	require.Same(t, spec, spec.For(PartNone))
	for part, handler := range map[Part]string{PartShard: "h", PartBefore: "b", PartAfter: "a"} {
		own := spec.For(part)
		require.Equal(t, handler, own.Handler)
		require.Zero(t, own.SlotLimit(), "the parent holds the slot")
		require.False(t, own.Sharding.On())
		require.Equal(t, ScheduleNone, own.Schedule.Kind)
		require.True(t, PolicyOf(own, false).MoveGone)
	}
	require.Equal(t, RouteRoundRobin, spec.For(PartShard).Routing)
	require.Equal(t, BlockSerial, spec.Blocking, "the job's own settings stay")
}

// TestAdvance goes through all that parts can say.
func TestAdvance(t *testing.T) {
	ended := func(states ...State) map[State]int {
		out := map[State]int{}
		for _, s := range states {
			out[s]++
		}
		return out
	}
	for name, c := range map[string]struct {
		state   State
		reason  Reason
		stage   Stage
		after   string
		family  Family
		step    Step
		want    State
		why     Reason
		message string
	}{
		"a part lives":            {state: Running, stage: StageShards, family: Family{Living: 1}, want: Running},
		"before hook succeeded":   {state: Running, stage: StageBefore, family: Family{Before: Succeeded}, step: StepReady, want: Due},
		"before hook failed":      {state: Running, stage: StageBefore, family: Family{Before: Lost}, step: StepEnded, want: Failed, why: ReasonBeforeHook, message: "ended as lost"},
		"before hook is not here": {state: Running, stage: StageBefore, step: StepReady, want: Due},
		"shards are not here":     {state: Running, stage: StageShards, step: StepReady, want: Due},
		"all succeeded":           {state: Running, stage: StageShards, family: Family{Shards: ended(Succeeded, Succeeded)}, step: StepEnded, want: Succeeded, message: "2 of 2 shards succeeded"},
		"not all":                 {state: Running, stage: StageShards, family: Family{Shards: ended(Succeeded, Missed, Lost)}, step: StepEnded, want: Failed, why: ReasonShards, message: "1 of 3 shards succeeded, 1 lost, 1 missed"},
		"after hook comes":        {state: Running, stage: StageShards, after: "a", family: Family{Shards: ended(Failed)}, step: StepAfter, want: Running},
		"after hook is not here":  {state: Running, stage: StageAfter, after: "a", family: Family{Shards: ended(Failed)}, step: StepAfter, want: Running},
		"after hook succeeded":    {state: Running, stage: StageAfter, after: "a", family: Family{Shards: ended(Succeeded), After: Succeeded}, step: StepEnded, want: Succeeded},
		"after hook, shard bad":   {state: Running, stage: StageAfter, after: "a", family: Family{Shards: ended(Failed), After: Succeeded}, step: StepEnded, want: Failed, why: ReasonShards},
		"after hook failed":       {state: Running, stage: StageAfter, after: "a", family: Family{Shards: ended(Succeeded), After: Failed}, step: StepEnded, want: Failed, why: ReasonAfterHook},
		"cancelled":               {state: Cancelling, reason: ReasonKilled, stage: StageShards, after: "a", family: Family{Shards: ended(Succeeded, Cancelled)}, step: StepEnded, want: Cancelled, why: ReasonKilled},
		"cancelled in a hook":     {state: Cancelling, reason: ReasonCovered, stage: StageBefore, family: Family{Before: Succeeded}, step: StepEnded, want: Cancelled, why: ReasonCovered},
		"timed out":               {state: Cancelling, reason: ReasonTimeout, stage: StageShards, family: Family{Shards: ended(Cancelled)}, step: StepEnded, want: TimedOut, why: ReasonTimeout},
		"it has ended":            {state: Failed, stage: StageShards, family: Family{Shards: ended(Succeeded)}, want: Failed},
		"it is no parent":         {state: Running, family: Family{Shards: ended(Succeeded)}, want: Running},
	} {
		t.Run(name, func(t *testing.T) {
			e, spec := spreadable(Sharding{Mode: ShardFixed, Shards: 2, After: c.after})
			e.State, e.Reason, e.Stage, e.HoldsSlot = c.state, c.reason, c.stage, true
			step, fx := e.AsParent().Advance(shardsAt, c.family, spec)
			require.Equal(t, c.step, step)
			require.Equal(t, c.want, e.State)
			require.Equal(t, step == StepEnded, fx.ReleaseSlot, "the slot goes with the end")
			require.Equal(t, step != StepEnded, e.HoldsSlot)
			if step == StepEnded {
				require.Equal(t, c.why, e.Reason)
				require.Contains(t, e.Message, c.message)
				require.True(t, e.WakeAt.IsZero())
				require.Equal(t, c.want == Failed || c.want == TimedOut, fx.Alert != "")
			}
		})
	}
}

func TestAParentLingersWithItsParts(t *testing.T) {
	e, spec := spreadable(Sharding{Mode: ShardFixed, Shards: 1})
	e.State, e.Stage, e.HoldsSlot = Running, StageShards, true
	step, fx := e.AsParent().Advance(shardsAt, Family{Lingering: 1, Shards: map[State]int{TimedOut: 1}}, spec)
	require.Equal(t, StepEnded, step)
	require.False(t, fx.ReleaseSlot)
	require.True(t, e.Lingers && e.HoldsSlot)
	action, _, err := e.Sweep(e.WakeAt, time.Time{}, 0, Policy{})
	require.NoError(t, err)
	require.Equal(t, SweepNothing, action)
	require.True(t, e.Lingers, "no lease of an instance ends it")
	step, fx = e.AsParent().Advance(shardsAt, Family{Shards: map[State]int{TimedOut: 1}}, spec)
	require.Equal(t, StepReturned, step)
	require.True(t, fx.ReleaseSlot)
	require.Equal(t, Failed, e.State)
}

func TestWhatDoesNotMoveAParent(t *testing.T) {
	e, spec := spreadable(Sharding{Mode: ShardFixed, Shards: 1})
	_, err := e.AsParent().Spread(shardsAt, spec, nil, counting())
	require.NoError(t, err)
	before := *e
	_, err = e.Finish(shardsAt, Report{Fence: e.Fence, Outcome: OutcomeSucceeded}, Policy{})
	require.Equal(t, CodeIllegalMove, CodeOf(err), "nobody runs it")
	require.Equal(t, VerdictDrop, Held{ID: e.ID, Fence: e.Fence, Phase: HeldRunning}.Reconcile(e, shardsAt, 9, Policy{}))
	require.Equal(t, before, *e)
	action, _, err := e.Sweep(shardsAt.Add(time.Hour), time.Time{}, 0, Policy{})
	require.NoError(t, err)
	require.Equal(t, SweepNothing, action)
	require.Equal(t, Running, e.State, "it has no instance whose lease could be over")
}

// TestALostShardIsNotRevived: its parent may have ended.
func TestALostShardIsNotRevived(t *testing.T) {
	for parent, want := range map[ExecutionID]State{0: RetryWait, 7: Failed} {
		e := Execution{ID: 8, Parent: parent, State: Lost, Fence: 1, Attempt: 1, MaxAttempts: 3, LogLines: -1}
		_, err := e.Finish(shardsAt, Report{Fence: 1, Outcome: OutcomeFailed}, Policy{})
		require.NoError(t, err)
		require.Equal(t, want, e.State)
	}
}

// TestARetryThatOnlyTheLostInstanceCouldRun is not waited for.
func TestARetryThatOnlyTheLostInstanceCouldRun(t *testing.T) {
	for name, c := range map[string]struct {
		bound InstanceID
		move  bool
		want  State
	}{
		"a shard that is missed with its instance": {9, false, Failed},
		"a shard that another takes":               {9, true, RetryWait},
		"a run":                                    {0, false, RetryWait},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{RetryLost: true, MoveGone: c.move, Retry: Retry{Delay: time.Hour}}
			e := Execution{ID: 8, Parent: 7, Bound: c.bound, Instance: 9, State: Running, Fence: 1, Attempt: 1, MaxAttempts: 3, LogLines: -1}
			fx, err := e.Lose(shardsAt, ReasonLeaseExpired, "silent", p)
			require.NoError(t, err)
			require.Equal(t, Lost, fx.Archive.State, "the attempt")
			require.Equal(t, c.want, e.State)
		})
	}
}

func TestCheckSharding(t *testing.T) {
	for name, c := range map[string]struct {
		s     Sharding
		wrong string
	}{
		"none":               {},
		"fixed":              {s: Sharding{Mode: ShardFixed, Shards: MaxShards, Before: "b", After: "a", Timeout: time.Hour}},
		"broadcast":          {s: Sharding{Mode: ShardBroadcast, OnGone: GoneMove}},
		"no mode":            {s: Sharding{After: "a"}, wrong: "body.sharding.mode"},
		"other mode":         {s: Sharding{Mode: "some"}, wrong: "body.sharding.mode"},
		"fixed none":         {s: Sharding{Mode: ShardFixed}, wrong: "body.sharding.shards"},
		"fixed too many":     {s: Sharding{Mode: ShardFixed, Shards: MaxShards + 1}, wrong: "body.sharding.shards"},
		"fixed gone":         {s: Sharding{Mode: ShardFixed, Shards: 2, OnGone: GoneMiss}, wrong: "body.sharding.onGone"},
		"broadcast shards":   {s: Sharding{Mode: ShardBroadcast, Shards: 2, OnGone: GoneMiss}, wrong: "body.sharding.shards"},
		"broadcast, no gone": {s: Sharding{Mode: ShardBroadcast}, wrong: "body.sharding.onGone"},
		"long name":          {s: Sharding{Mode: ShardFixed, Shards: 1, Before: strings.Repeat("x", 129)}, wrong: "body.sharding.before"},
		"negative timeout":   {s: Sharding{Mode: ShardFixed, Shards: 1, Timeout: -1}, wrong: "body.sharding.timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			var check checker
			check.sharding(c.s)
			if c.wrong == "" {
				require.Empty(t, check.fields)
				return
			}
			require.NotEmpty(t, check.fields)
			require.Equal(t, c.wrong, check.fields[0].Location)
		})
	}
}

func TestShardResultsAreBounded(t *testing.T) {
	parent := &Execution{ID: 7, FireAt: shardsAt, Shards: MaxShards}
	results := NewShardResults(parent, Family{Shards: map[State]int{Succeeded: MaxShards - 1, Failed: 1}})
	results.Add(&Execution{Shard: 0, State: Failed, Error: "no"})
	results.Add(&Execution{Shard: 1, State: Succeeded, Output: []byte("not JSON")})
	for i := 2; i < MaxShards; i++ {
		results.Add(&Execution{Shard: i, State: Succeeded, Output: []byte(`"` + strings.Repeat("x", 900) + `"`)})
	}
	raw, err := results.JSON()
	require.NoError(t, err)
	require.LessOrEqual(t, len(raw), MaxShardResults)
	var got ShardResults
	require.NoError(t, json.Unmarshal(raw, &got))
	require.Len(t, got.Shards, MaxShards)
	require.Equal(t, ShardResult{Index: 0, State: "failed", Error: "no"}, got.Shards[0])
	require.Equal(t, json.RawMessage(`"not JSON"`), got.Shards[1].Output)
	require.Positive(t, got.Omitted)
	require.Equal(t, MaxShards-1, got.Succeeded)
}

// The output of a shard may be stored by an earlier version, in any bytes.
func TestShardResultsAreJSONInUTF8(t *testing.T) {
	for stored, want := range map[string]string{"{\"a\":\"\xb0\xd9\"}": "{\"a\":\"\uFFFD\"}", "\xb0 done": "\"\uFFFD done\"", "1": "1"} {
		results := NewShardResults(&Execution{Shards: 1}, Family{Shards: map[State]int{Succeeded: 1}})
		results.Add(&Execution{State: Succeeded, Output: []byte(stored)})
		require.Equal(t, want, string(results.Shards[0].Output))
	}
}
