package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

var (
	fire = time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	spec = &domain.JobSpec{Name: "nightly", Handler: "reconcile", Routing: domain.RouteRoundRobin}
)

func at(ms int) time.Time { return fire.Add(time.Duration(ms) * time.Millisecond) }

// TestEveryCodeHasWords reads the constants of package domain.
func TestEveryCodeHasWords(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "domain", "*.go"))
	require.NoError(t, err)
	seen := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			kind, ok := v.Type.(*ast.Ident)
			literal, isText := v.Values[0].(*ast.BasicLit)
			if !ok || !isText || len(literal.Value) < 3 {
				return true
			}
			text := literal.Value[1 : len(literal.Value)-1]
			switch kind.Name {
			case "Reason":
				seen++
				require.NotEmpty(t, reasons[domain.Reason(text)].text.En, text)
				require.NotEmpty(t, reasons[domain.Reason(text)].text.Zh, text)
			case "Cause":
				seen++
				require.NotEmpty(t, causes[domain.Cause(text)].En, text)
			}
			return true
		})
	}
	require.Greater(t, seen, 30)
	for _, s := range domain.States {
		require.Equal(t, s.Terminal(), states[s] != "", s)
	}
}

func TestSummaries(t *testing.T) {
	for name, c := range map[string]struct {
		run  domain.Execution
		want string
	}{
		"ahead":           {domain.Execution{State: domain.Due, NotBefore: at(60_000)}, "It waits for its time, 2026-11-21T02:01:00.000Z."},
		"due":             {domain.Execution{State: domain.Due, NotBefore: fire}, "It is due and about to be sent to an instance."},
		"waits for slots": {domain.Execution{State: domain.Due, NotBefore: fire, Reason: domain.ReasonWaitInstance, Message: "full (8 of 8 slots are taken)"}, "It is due and waits, because no instance could take it: full (8 of 8 slots are taken)."},
		"waits, deadline": {domain.Execution{State: domain.Due, NotBefore: fire, Reason: domain.ReasonWaitInstance, ExpireAt: at(300_000)}, "It is due and waits, because no instance could take it; it waits until 2026-11-21T02:05:00.000Z."},
		"between attempts": {domain.Execution{State: domain.RetryWait, Reason: domain.ReasonHandlerFailed, NotBefore: at(90_000), Attempt: 1},
			"An attempt ended badly, because the handler returned an error; the next one comes at 2026-11-21T02:01:30.000Z."},
		"on time": {domain.Execution{State: domain.Succeeded, StartedAt: at(5), Attempt: 1}, "It ran and succeeded; it started on time."},
		"late":    {domain.Execution{State: domain.Succeeded, StartedAt: at(7500), Attempt: 1, Delays: []domain.Delay{{Reason: domain.ReasonWaitSlot}}}, "It ran and succeeded; it started 7.5s late, because an earlier run of the job was still going on."},
		"planned late": {domain.Execution{State: domain.Running, PlannedAt: at(7000), StartedAt: at(7010), Attempt: 1},
			"It is running; it started 7.01s late, because it was planned only after its time: no admin node was working, or the run was asked for later."},
		"nobody there": {domain.Execution{State: domain.Succeeded, PlannedAt: at(-2000), OfferedAt: at(59_000), StartedAt: at(59_100), Attempt: 1, Delays: []domain.Delay{{At: at(58_000), LastAt: at(58_000), Reason: domain.ReasonWaitInstance}}},
			"It ran and succeeded; it started 59.1s late, because nobody offered it meanwhile: no admin node was working, the database was away, or both had too much to do."},
		"no grant": {domain.Execution{State: domain.Succeeded, PlannedAt: at(-2000), OfferedAt: at(61_000), StartedAt: at(61_010), Attempt: 1, Delays: []domain.Delay{{At: at(5000), LastAt: at(5000), Reason: domain.ReasonNotStarted, Message: "no grant came in time", Instance: 11}}},
			"It ran and succeeded; it started 1m1s late, because nobody offered it meanwhile: no admin node was working, the database was away, or both had too much to do."},
		"full": {domain.Execution{State: domain.Succeeded, PlannedAt: at(-2000), OfferedAt: at(9000), StartedAt: at(9100), Attempt: 1, Delays: []domain.Delay{
			{At: at(1000), LastAt: at(1000), Reason: domain.ReasonWaitInstance, Message: "every instance that serves the handler is full (64 of 64 slots are taken)"},
			{At: at(8000), LastAt: at(8000), Reason: domain.ReasonOfferRefused, Instance: 11},
		}}, "It ran and succeeded; it started 9.1s late, because no instance could take it: every instance that serves the handler is full (64 of 64 slots are taken)."},
		"slow instance": {domain.Execution{State: domain.Succeeded, PlannedAt: at(-2000), OfferedAt: at(5), StartedAt: at(4000), Attempt: 1},
			"It ran and succeeded; it started 4s late, because its instance took that long to start it after the offer."},
		"not sent": {domain.Execution{State: domain.Failed, Reason: domain.ReasonSendFailed, Fence: 3}, "It did not run, because it was sent as often as the job allows, and no instance took it."},
		"failed":   {domain.Execution{State: domain.Failed, Reason: domain.ReasonHandlerPanic, Attempt: 3}, "It ended as failed after 3 attempts, because the handler panicked."},
		"failed, and said why": {domain.Execution{State: domain.Failed, Reason: domain.ReasonHandlerFailed, Attempt: 3, Error: "\n no route to db\nat main.go:7"},
			"“no route to db”. It ended as failed after 3 attempts, because the handler returned an error."},
		"repeats after an error": {domain.Execution{State: domain.Due, NotBefore: fire, Reason: domain.ReasonWaitSlot, Attempt: 1, Error: "no route to db"},
			"It is due and waits, because an earlier run of the job was still going on."},
		"cancelled": {domain.Execution{State: domain.Cancelled, Reason: domain.ReasonKilled}, "It did not run, because somebody cancelled it."},
		"missed":    {domain.Execution{State: domain.Missed, Reason: domain.ReasonNoExecutor}, "It did not run, because no instance of the executor could take it before the wait was over."},
		"calendar": {domain.Execution{State: domain.Excluded, Reason: domain.ReasonCalendar, Message: "the calendar \"cn\" (version 2) has a holiday on 2026-11-21"},
			"It did not run, because a calendar of the job excludes this instant: the calendar \"cn\" (version 2) has a holiday on 2026-11-21."},
		"discarded": {domain.Execution{State: domain.Discarded, Reason: domain.ReasonOverlap}, "It did not run, because an earlier run of the job was still going on, and the job discards later ones."},
	} {
		t.Run(name, func(t *testing.T) {
			c.run.FireAt = fire
			got := Run{Execution: c.run, Spec: spec, Now: at(1000)}.Explain()
			require.Equal(t, c.want, got.Summary.En)
			require.NotEmpty(t, got.Summary.Zh)
			require.NotContains(t, got.Summary.Zh, "because")
		})
	}
}

func TestJitterIsTold(t *testing.T) {
	jittered := *spec
	jittered.Schedule.JitterMax = 30 * time.Second
	e := domain.Execution{
		Cause: domain.CauseSchedule, FireAt: fire, PlannedAt: at(-2000), NotBefore: at(17000), State: domain.Succeeded, Attempt: 1, Fence: 1, Instance: 12,
		OfferedAt: at(17001), GrantedAt: at(17002), StartedAt: at(17003), FinishedAt: at(17004),
	}
	got := Run{Execution: e, Spec: &jittered, Attempts: []domain.Attempt{e.CurrentAttempt()}, Now: at(20000)}.Explain()
	require.Equal(t, "It ran and succeeded; it started on time.", got.Summary.En)
	require.Equal(t, Step{at(17000), "put_off", Text{"When it was to start: the schedule's jitter puts each run off.", "应开始的时刻：调度计划的抖动使每次运行随机延后。"}}, got.Steps[2])

	before := domain.Attempt{Number: 1, Fence: 1, State: domain.RetryWait, Reason: domain.ReasonSnoozed}
	e.Fence = 2 // after a snooze, which puts off as well
	for _, step := range (Run{Execution: e, Spec: &jittered, Attempts: []domain.Attempt{before, e.CurrentAttempt()}, Now: at(20000)}).Explain().Steps {
		require.NotEqual(t, "put_off", step.Code)
	}
}

func TestStepsComeInOrder(t *testing.T) {
	one := domain.Instance{ID: 11, Name: "one", Handlers: []string{"reconcile"}}
	e := domain.Execution{
		Cause: domain.CauseSchedule, FireAt: fire, PlannedAt: at(-2000), State: domain.Succeeded, Attempt: 2, Fence: 3, Instance: 12,
		OfferedAt: at(5000), GrantedAt: at(5001), StartedAt: at(5002), FinishedAt: at(6000),
		Delays: []domain.Delay{
			{At: at(1), LastAt: at(900), Count: 4, Reason: domain.ReasonOfferRefused, Message: "busy", Instance: 11},
			{At: at(5500), LastAt: at(5500), Count: 1, Reason: domain.ReasonKilled, Message: "by anna", Stop: true},
		},
	}
	first := domain.Attempt{Number: 1, Fence: 2, Instance: 11, State: domain.Failed, Reason: domain.ReasonHandlerFailed,
		OfferedAt: at(1000), GrantedAt: at(1001), StartedAt: at(1002), FinishedAt: at(2000)}
	var codes []string
	steps := Run{Execution: e, Spec: spec, Attempts: []domain.Attempt{first}, Instances: []domain.Instance{one}, Now: at(9000)}.Explain().Steps
	for i, s := range steps {
		codes = append(codes, s.Code)
		require.NotEmpty(t, s.Text.Zh)
		require.True(t, i == 0 || !s.At.Before(steps[i-1].At))
	}
	require.Equal(t, []string{"claimed", "planned", "delayed:offer_refused", "offered", "granted", "started", "finished",
		"offered", "granted", "started", "stop_asked:killed", "finished"}, codes)
	require.Equal(t, "It was asked to stop, because "+because(domain.ReasonKilled).En+": by anna.", steps[10].Text.En)
	require.Equal(t, "It could not start, because the instance refused the offer (instance one): busy (4 times, last at 2026-11-21T02:00:00.900Z).", steps[2].Text.En)
	require.Equal(t, "Offered to instance 12 (fence 3).", steps[7].Text.En, "an instance that is forgotten keeps its number")
}

func TestCandidates(t *testing.T) {
	serves := []string{"other", "reconcile"}
	instances := []domain.Instance{
		{ID: 1, Name: "taken", Handlers: serves, ConnectedAt: at(-9000), LeaseUntil: at(9000), Slots: 2, Running: 1},
		{ID: 2, Name: "other handler", Handlers: []string{"other"}, ConnectedAt: at(-9000), LeaseUntil: at(9000), Slots: 2},
		{ID: 3, Name: "came later", Handlers: serves, ConnectedAt: at(2000), LeaseUntil: at(9000), Slots: 2, Draining: true},
		{ID: 4, Name: "had gone", Handlers: serves, ConnectedAt: at(-9000), GoneAt: at(500)},
		{ID: 5, Name: "gone long ago", Handlers: serves, ConnectedAt: at(-9000), GoneAt: at(-5000)},
		{ID: 6, Name: "full", Handlers: serves, ConnectedAt: at(-9000), LeaseUntil: at(9000), Slots: 2, Running: 2},
		{ID: 7, Name: "silent", Handlers: serves, ConnectedAt: at(-9000), LeaseUntil: at(100), Slots: 2},
		{ID: 9, Name: "no journal", Handlers: serves, ConnectedAt: at(-9000), LeaseUntil: at(9000), Slots: 2, Running: 2, Refusing: true},
		{ID: 8, Name: "refused", Handlers: serves, ConnectedAt: at(-9000), LeaseUntil: at(9000), Slots: 2},
	}
	verdicts := func(e domain.Execution) map[string]Verdict {
		e.FireAt = fire
		e.Delays = []domain.Delay{{Reason: domain.ReasonOfferRefused, Instance: 8, LastAt: at(1)}}
		out := map[string]Verdict{}
		for _, c := range (Run{Execution: e, Spec: spec, Instances: instances, Now: at(5000)}).Explain().Candidates {
			out[c.Name] = c.Verdict
			require.NotEmpty(t, c.Text.En)
			require.NotEmpty(t, c.Text.Zh)
		}
		return out
	}
	require.Equal(t, map[string]Verdict{
		"taken": Chosen, "other handler": NoHandler, "came later": NotConnected, "had gone": NotConnected,
		"full": Full, "silent": Silent, "refused": Refused, "no journal": Refusing,
	}, verdicts(domain.Execution{State: domain.Succeeded, Instance: 1, OfferedAt: at(1000), Passed: passedBy(4, 6, 9)}), "at the offer")
	require.Equal(t, map[string]Verdict{
		"taken": HasRoom, "other handler": NoHandler, "came later": Draining, "had gone": NotConnected,
		"full": Full, "silent": Silent, "refused": Refused, "no journal": Refusing,
	}, verdicts(domain.Execution{State: domain.Due, Reason: domain.ReasonWaitInstance}), "now, for one that waits")
	require.Empty(t, verdicts(domain.Execution{State: domain.Missed, Reason: domain.ReasonMisfire, FinishedAt: at(1)}))
	require.NotEmpty(t, verdicts(domain.Execution{State: domain.Missed, Reason: domain.ReasonNoExecutor, FinishedAt: at(1)}))
}

// TestRunsThatWaitForOne: those that are not waited for are not "full".
func TestRunsThatWaitForOne(t *testing.T) {
	instances := three()
	select2 := func(text string) domain.Selector {
		s, err := domain.ParseSelector(text)
		require.NoError(t, err)
		return s
	}
	explain := func(spec domain.JobSpec, e domain.Execution) map[string]Candidate {
		return candidatesOf(t, Run{Execution: e, Spec: &spec, Instances: instances})
	}
	waits := domain.Execution{State: domain.Due, Reason: domain.ReasonWaitInstance}
	instances[0].Running = 4
	require.Equal(t, []Verdict{Full, NotChosen, NotChosen}, verdictsOf(explain(domain.JobSpec{Routing: domain.RouteFirst}, waits)))
	require.Equal(t, []Verdict{NotChosen, NotChosen, HasRoom}, verdictsOf(explain(domain.JobSpec{Routing: domain.RouteLast}, waits)))
	require.Equal(t, []Verdict{Full, HasRoom, HasRoom}, verdictsOf(explain(domain.JobSpec{Routing: domain.RouteBusyOver}, waits)))
	require.Equal(t, []Verdict{NotChosen, HasRoom, NotChosen}, verdictsOf(explain(domain.JobSpec{Routing: domain.RouteFailover, Prefer: select2("gpu")}, waits)))
}

func verdictsOf(c map[string]Candidate) []Verdict {
	return []Verdict{c["old"].Verdict, c["middle"].Verdict, c["young"].Verdict}
}

func TestFireTimesWithoutARun(t *testing.T) {
	base := FireTime{At: fire, Now: fire.Add(time.Hour), CreatedAt: fire.Add(-24 * time.Hour), State: domain.JobEnabled, Planned: true}
	for want, change := range map[string]func(*FireTime){
		"The job did not exist yet; it was created at 2026-11-21T02:00:00.001Z.":                                                              func(f *FireTime) { f.CreatedAt = at(1) },
		"The schedule does not fire at this instant; before it, it fires at 2026-11-21T01:59:59.000Z; after it, at 2026-11-21T02:00:01.000Z.": func(f *FireTime) { f.Planned, f.Before, f.After = false, at(-1000), at(1000) },
		"The schedule does not fire at this instant.":                                                                                         func(f *FireTime) { f.Planned = false },
		"The schedule fires at this instant, but runs that old have been deleted.":                                                            func(f *FireTime) { f.KeptSince = at(1) },
		"The job is paused: it fires no more until it is resumed (stock-taking).":                                                             func(f *FireTime) { f.State, f.Pause.Note = domain.JobPaused, "stock-taking" },
		"anna paused the job at 2026-11-02T01:02:03.000Z: it fires no more until it is resumed (stock-taking).": func(f *FireTime) {
			f.State, f.Pause = domain.JobPaused, domain.Pause{By: "anna", At: time.Date(2026, 11, 2, 1, 2, 3, 0, time.UTC), Note: "stock-taking"}
		},
		"It waits for the end of maintenance (new disks). The run of the newest fire time that waits stands for all then, unless the job makes each of them up.": func(f *FireTime) { f.Waits = &domain.Maintenance{Reason: "new disks"} },
		"It lies ahead: its run is written a few seconds before.":                                                                               func(f *FireTime) { f.Now = at(-1) },
		`It lies ahead, and it will not run: the calendar "cn" excludes it.`:                                                                    func(f *FireTime) { f.Now, f.Calendar = at(-1), "cn" },
		"The schedule fires at this instant, and there is no run of it: the job was paused then, or its schedule was changed around that time.": func(*FireTime) {},
	} {
		f := base
		change(&f)
		got := f.Explain().Summary
		require.Equal(t, want, got.En)
		require.NotEmpty(t, got.Zh)
	}
}

// TestAHandlerThatDoesNotListen: who waits hears of it, and so does who asks
// for the run itself.
func TestAHandlerThatDoesNotListen(t *testing.T) {
	one := domain.Instance{ID: 11, Name: "one", Handlers: []string{"reconcile"}}
	stuck := domain.Execution{
		ID: 7, State: domain.TimedOut, Reason: domain.ReasonTimeout, Attempt: 1, Fence: 1, Instance: 11, Lingers: true, HoldsSlot: true,
		FireAt: fire, PlannedAt: at(-2000), OfferedAt: at(1), GrantedAt: at(2), StartedAt: at(3), FinishedAt: at(12_000),
	}
	other := domain.Execution{ID: 8, State: domain.Running, Instance: 12, StartedAt: at(4)}
	waits := domain.Execution{ID: 9, State: domain.Due, Reason: domain.ReasonWaitSlot, FireAt: fire, NotBefore: fire}
	run := Run{Execution: waits, Spec: spec, Instances: []domain.Instance{one}, Now: at(20_000), Holders: []domain.Execution{other, waits, stuck}}
	got := run.Explain().Summary
	require.Equal(t, "It is due and waits, because an earlier run of the job was still going on"+
		"; run 7 before it ended as timed_out at 2026-11-21T02:00:12.000Z, but its handler still runs on instance one since 2026-11-21T02:00:00.003Z"+
		"; run 8 still runs on instance 12 since 2026-11-21T02:00:00.004Z.", got.En)
	require.Contains(t, got.Zh, "处理器自 2026-11-21T02:00:00.003Z 起在实例 one 上仍在运行")

	run.Waiting, run.PilesUp = 101, true
	got = run.Explain().Summary
	require.Contains(t, got.En, "; runs take longer than the interval, and 101 wait.")
	require.Contains(t, got.Zh, "；运行时间超过触发间隔，有 101 次运行在等待。")

	run.Execution = stuck
	got = run.Explain().Summary
	require.Equal(t, "It ended as timed_out after one attempt, because it ran longer than the job's timeout. Its handler was told to stop,"+
		" had not done so at 2026-11-21T02:00:12.000Z and still runs on instance one since 2026-11-21T02:00:00.003Z, and it keeps its slot until that has returned or its instance is gone.", got.En)
	require.NotEmpty(t, got.Zh)

	run.Execution.State, run.Execution.Reason, run.Execution.Lingers = domain.Cancelling, domain.ReasonKilled, false
	got = run.Explain().Summary
	require.Contains(t, got.En, "Its handler has not returned yet and still runs on instance one since 2026-11-21T02:00:00.003Z")
	require.Contains(t, got.Zh, "实例 one 上仍在运行")
	run.Execution = stuck
	run.Execution.Lingers, run.Execution.ReturnedAt = false, at(19_000)
	e := run.Explain()
	require.NotContains(t, e.Summary.En, "still runs")
	require.Equal(t, "returned", e.Steps[len(e.Steps)-1].Code)
}
