package ledger_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/admin/verify/ledger"
)

// book is a ledger in memory.
type book struct {
	now     time.Time
	jobs    []store.LedgerJob
	entries []store.LedgerEntry
}

func (b *book) ReadLedger(_ context.Context, fn func(store.LedgerReader) error) error { return fn(b) }
func (b *book) Now() time.Time                                                        { return b.now }

func (b *book) Jobs(_ context.Context, after domain.JobID, limit int) ([]store.LedgerJob, error) {
	i := slices.IndexFunc(b.jobs, func(j store.LedgerJob) bool { return j.ID > after })
	if i < 0 {
		return nil, nil
	}
	return b.jobs[i:min(i+limit, len(b.jobs))], nil
}

func (b *book) Occurrences(_ context.Context, jobs []domain.JobID, from, to time.Time, fn func(store.Occurrence) error) error {
	var list []store.Occurrence
	for _, e := range b.entries {
		if slices.Contains(jobs, e.JobID) && e.FireAt >= from.UnixMilli() && e.FireAt <= to.UnixMilli() {
			scheduled := (e.Cause == domain.CauseSchedule || e.Cause == domain.CauseMisfire) && e.Parent == 0
			list = append(list, store.Occurrence{JobID: e.JobID, ID: e.ID, FireAt: e.FireAt, Scheduled: scheduled, Part: e.Parent != 0})
		}
	}
	slices.SortStableFunc(list, func(a, b store.Occurrence) int {
		return cmp.Or(cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.FireAt, b.FireAt))
	})
	for _, o := range list {
		if err := fn(o); err != nil {
			return err
		}
	}
	return nil
}

func (b *book) Executions(_ context.Context, after, until domain.ExecutionID, fn func(*store.LedgerEntry) error) error {
	for i := range b.entries {
		if e := b.entries[i]; e.ID > after && e.ID <= until {
			if err := fn(&e); err != nil {
				return err
			}
		}
	}
	return nil
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newBook keeps an hour, up to noon, of a job that fires every ten seconds and
// was paused for ten minutes, of one that was edited, and of a fixed delay.
func newBook() *book {
	b := &book{now: noon}
	every := func(d time.Duration) domain.JobSpec {
		return domain.JobSpec{Schedule: domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: d}}
	}
	made := noon.Add(-2 * time.Hour)
	job := func(id domain.JobID, spec domain.JobSpec) *store.LedgerJob {
		b.jobs = append(b.jobs, store.LedgerJob{
			ID: id, TenantID: 1, NextFireAt: noon.Add(3 * time.Second),
			Revisions: []store.Revision{{JobID: id, Revision: 1, Spec: spec, CreatedAt: made}},
			Events:    []store.JobEvent{{State: domain.JobEnabled, At: made}},
		})
		return &b.jobs[len(b.jobs)-1]
	}
	pausedAt, resumedAt, edited := noon.Add(-40*time.Minute-time.Second), noon.Add(-30*time.Minute-time.Second), noon.Add(-20*time.Minute-time.Second)
	j := job(1, every(10*time.Second))
	j.Events = append(j.Events, store.JobEvent{State: domain.JobPaused, At: pausedAt},
		store.JobEvent{State: domain.JobPaused, At: pausedAt.Add(time.Minute)}, // with another note
		store.JobEvent{State: domain.JobEnabled, At: resumedAt})
	j = job(2, every(10*time.Second))
	j.Revisions = append(j.Revisions, store.Revision{JobID: 2, Revision: 2, Spec: every(time.Minute), CreatedAt: edited})
	job(3, domain.JobSpec{Schedule: domain.ScheduleSpec{Kind: domain.ScheduleFixedDelay, Every: time.Minute}})
	for at := made.Add(time.Second); !at.After(noon); at = at.Add(time.Second) {
		ten, minute := at.Unix()%10 == 0, at.Unix()%60 == 0
		if ten && !(at.After(pausedAt) && at.Before(resumedAt)) {
			b.ran(1, at)
		}
		if ten && (at.Before(edited) || minute) {
			b.ran(2, at)
		}
		if at.Unix()%61 == 0 {
			b.ran(3, at)
		}
	}
	return b
}

// ran adds a row that succeeded 20 ms after its fire time.
func (b *book) ran(job domain.JobID, at time.Time) {
	ms := at.UnixMilli()
	b.entries = append(b.entries, store.LedgerEntry{
		ID: domain.ExecutionID(domain.IDFloor(at.Add(-3*time.Second)) + int64(job)), JobID: job, TenantID: 1, Cause: domain.CauseSchedule, FireAt: ms,
		State: domain.Succeeded, Attempt: 1, NotBefore: ms, PlannedAt: ms - 3000, OfferedAt: ms + 5, GrantedAt: ms + 10, StartedAt: ms + 20, FinishedAt: ms + 120,
	})
}

func judge(t *testing.T, b *book) *verify.Report {
	t.Helper()
	r, err := ledger.Check(t.Context(), b, ledger.Options{Since: time.Hour})
	require.NoError(t, err)
	return r
}

// A run that was planned ahead and cancelled, and whose job was paused before its time.
func TestACancelledRunOfAJobThatWasPausedThen(t *testing.T) {
	b := newBook()
	at := noon.Add(-35 * time.Minute) // job 1 is paused
	b.ran(1, at)
	e := &b.entries[len(b.entries)-1]
	e.State, e.OfferedAt, e.GrantedAt, e.StartedAt, e.FinishedAt = domain.Cancelled, 0, 0, 0, at.Add(-2*time.Second).UnixMilli()
	require.Empty(t, judge(t, b).Examples)
	for what, change := range map[string]func(){
		"it ran":                      func() { e.GrantedAt = at.UnixMilli() },
		"it was cancelled afterwards": func() { e.GrantedAt, e.FinishedAt = 0, at.Add(time.Second).UnixMilli() },
	} {
		change()
		r := judge(t, b)
		require.Len(t, r.Examples, 1, what)
		require.Equal(t, verify.Phantom, r.Examples[0].Kind)
	}
	b.entries = slices.DeleteFunc(b.entries, func(o store.LedgerEntry) bool { return o.ID == e.ID })
	require.Empty(t, judge(t, b).Examples)
}

func TestACleanBook(t *testing.T) {
	b := newBook()
	r := judge(t, b)
	require.Empty(t, r.Examples)
	require.Equal(t, 0, r.ExitCode())
	// An hour but the last minute, which is left alone: every ten seconds but for
	// the pause; the same until the edit, then every minute; and the delay.
	require.Equal(t, (355-60)+(40*6+19)+59, r.Expected)
	require.Equal(t, r.Expected, r.Accounted)
	require.Equal(t, r.Expected, r.Ran)
	require.Equal(t, 20*time.Millisecond, r.Outside.Max)
	require.Contains(t, r.Headline(), "0 missed, 0 double, worst late 20.0 ms")
}

// A window that begins inside of a millisecond treats rows and fire times alike.
func TestTheEdgeOfTheWindow(t *testing.T) {
	r, err := ledger.Check(t.Context(), newBook(), ledger.Options{Since: time.Hour - 400*time.Microsecond, Recent: 2*time.Minute + 400*time.Microsecond})
	require.NoError(t, err)
	require.Empty(t, r.Examples)
}

// cut makes a run that is in the book a family of three shards.
func (b *book) cut(e *store.LedgerEntry) {
	e.Attempt, e.OfferedAt, e.GrantedAt, e.Stage, e.Shards = 0, 0, 0, domain.StageShards, 3
	parent := *e
	for shard := range int64(3) {
		b.entries = append(b.entries, store.LedgerEntry{
			ID: parent.ID + domain.ExecutionID(10+shard), JobID: parent.JobID, TenantID: 1, Cause: parent.Cause, FireAt: parent.FireAt, State: domain.Succeeded, Attempt: 1,
			PlannedAt: parent.FireAt + 5, NotBefore: parent.FireAt + 5, OfferedAt: parent.FireAt + 6, GrantedAt: parent.FireAt + 7, StartedAt: parent.FireAt + 8, FinishedAt: parent.FireAt + 90,
			Parent: parent.ID, Part: domain.PartShard, Shard: shard, Shards: 3,
		})
	}
}

// TestFamilies: shards are judged each by itself, and with their parent.
func TestFamilies(t *testing.T) {
	for name, c := range map[string]struct {
		change func(parent *store.LedgerEntry, shards []store.LedgerEntry) (keep int)
		want   verify.Kind
	}{
		"clean":                       {func(*store.LedgerEntry, []store.LedgerEntry) int { return 3 }, ""},
		"a shard is missing":          {func(*store.LedgerEntry, []store.LedgerEntry) int { return 2 }, verify.Missed},
		"a shard twice":               {func(_ *store.LedgerEntry, s []store.LedgerEntry) int { s[2].Shard = 1; return 3 }, verify.Double},
		"ended before its shard":      {func(_ *store.LedgerEntry, s []store.LedgerEntry) int { s[2].State = domain.Running; return 3 }, verify.FalseResult},
		"succeeded with a lost shard": {func(_ *store.LedgerEntry, s []store.LedgerEntry) int { s[2].State = domain.Lost; return 3 }, verify.FalseResult},
		"failed without one": {func(p *store.LedgerEntry, _ []store.LedgerEntry) int {
			p.State, p.Reason = domain.Failed, domain.ReasonShards
			return 3
		}, verify.FalseResult},
		"a failed one, told": {func(p *store.LedgerEntry, s []store.LedgerEntry) int {
			p.State, p.Reason, s[0].State = domain.Failed, domain.ReasonShards, domain.Failed
			return 3
		}, ""},
		"only some, as asked":    {func(p *store.LedgerEntry, _ []store.LedgerEntry) int { p.Picked = true; return 1 }, ""},
		"into the fire after it": {func(p *store.LedgerEntry, _ []store.LedgerEntry) int { p.FinishedAt += 10_500; return 3 }, verify.Overlap},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			i := slices.IndexFunc(b.entries, func(e store.LedgerEntry) bool {
				return e.JobID == 1 && e.FireAt == noon.Add(-15*time.Minute).UnixMilli()
			})
			n := len(b.entries)
			b.cut(&b.entries[i])
			b.cut(&b.entries[slices.IndexFunc(b.entries, func(e store.LedgerEntry) bool {
				return e.JobID == 1 && e.FireAt == noon.Add(-15*time.Minute+10*time.Second).UnixMilli()
			})])
			keep := c.change(&b.entries[i], b.entries[n:n+3])
			b.entries = slices.Delete(b.entries, n+keep, n+3)
			slices.SortFunc(b.entries, func(x, y store.LedgerEntry) int { return cmp.Compare(x.ID, y.ID) })
			r := judge(t, b)
			if c.want == "" {
				require.Empty(t, r.Examples)
				return
			}
			require.Positive(t, r.Counts[c.want], "%v", r.Examples)
			require.LessOrEqual(t, len(r.Examples), 2, "%v", r.Examples)
		})
	}
}

// b59 starts a run 59 s late: all nodes had died when it was planned.
func b59(e *store.LedgerEntry) {
	e.JobID = 3 // its runs are a minute apart
	e.OfferedAt, e.GrantedAt, e.StartedAt, e.FinishedAt = e.FireAt+59_000, e.FireAt+59_001, e.FireAt+59_002, e.FireAt+59_100
}

// TestWaitsAreNoFaults: what waited for its slot or an instance stands by
// itself, and is not late by the misfire threshold.
func TestWaitsAreNoFaults(t *testing.T) {
	b := newBook()
	i := slices.IndexFunc(b.entries, func(e store.LedgerEntry) bool {
		return e.JobID == 3 && e.FireAt > noon.Add(-20*time.Minute).UnixMilli()
	})
	e := &b.entries[i]
	b59(e)
	e.FirstDelay = e.FireAt + 1000
	r := judge(t, b)
	require.Empty(t, r.Examples)
	require.Equal(t, verify.Stats{Count: 1, P50: 59_002 * time.Millisecond, P99: 59_002 * time.Millisecond, Max: 59_002 * time.Millisecond}, r.Waited)
	require.Zero(t, r.Inside)
	require.Equal(t, r.Ran-1, r.Outside.Count)
}

// TestEveryWrongBookIsFound damages one row in the middle of the hour.
func TestEveryWrongBookIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *book, e *store.LedgerEntry)
		want   verify.Kind
	}{
		"missed": {func(b *book, e *store.LedgerEntry) {
			b.entries = slices.DeleteFunc(b.entries, func(x store.LedgerEntry) bool { return x.ID == e.ID })
		}, verify.Missed},
		"double":          {func(b *book, e *store.LedgerEntry) { twin := *e; twin.ID++; b.entries = append(b.entries, twin) }, verify.Double},
		"not a fire time": {func(_ *book, e *store.LedgerEntry) { e.FireAt++ }, verify.Phantom},
		"while paused":    {func(b *book, _ *store.LedgerEntry) { b.ran(1, noon.Add(-35*time.Minute)) }, verify.Phantom},
		"after the edit":  {func(b *book, _ *store.LedgerEntry) { b.ran(2, noon.Add(-10*time.Minute+10*time.Second)) }, verify.Phantom},
		"early":           {func(_ *book, e *store.LedgerEntry) { e.GrantedAt = e.FireAt - 1 }, verify.Early},
		"never granted":   {func(_ *book, e *store.LedgerEntry) { e.GrantedAt = 0 }, verify.FalseResult},
		"never tried":     {func(_ *book, e *store.LedgerEntry) { e.Attempt = 0 }, verify.FalseResult},
		"a misfire ahead": {func(_ *book, e *store.LedgerEntry) {
			e.State, e.Reason, e.FinishedAt = domain.Missed, domain.ReasonMisfire, e.PlannedAt
		}, verify.Gap},
		"beyond its misfire threshold": {func(_ *book, e *store.LedgerEntry) { b59(e) }, verify.Late},
		"and put on record too late":   {func(_ *book, e *store.LedgerEntry) { b59(e); e.FirstDelay = e.FireAt + 40_000 }, verify.Late},
		"forgotten":                    {func(_ *book, e *store.LedgerEntry) { e.State, e.WakeAt = domain.Due, e.FireAt+1000 }, verify.Unfinished},
		"waits where no node looks":    {func(_ *book, e *store.LedgerEntry) { e.State, e.Unlisted = domain.Due, true }, verify.Unfinished},
		"overlap":                      {func(_ *book, e *store.LedgerEntry) { e.GrantedAt += 5000; e.FinishedAt += 10_500 }, verify.Overlap},
		"offered after the pause": {func(b *book, _ *store.LedgerEntry) {
			i := slices.IndexFunc(b.entries, func(x store.LedgerEntry) bool {
				return x.JobID == 1 && x.FireAt == noon.Add(-40*time.Minute-10*time.Second).UnixMilli()
			})
			b.entries[i].OfferedAt = noon.Add(-40*time.Minute).UnixMilli() + 500
		}, verify.Phantom},
		"an overdue trigger": {func(b *book, _ *store.LedgerEntry) {
			next := noon.Add(-20 * time.Minute)
			b.jobs[0].NextFireAt = next
			b.entries = slices.DeleteFunc(b.entries, func(x store.LedgerEntry) bool { return x.JobID == 1 && x.FireAt >= next.UnixMilli() })
		}, verify.Unfinished},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			i := slices.IndexFunc(b.entries, func(e store.LedgerEntry) bool {
				return e.JobID == 1 && e.FireAt == noon.Add(-15*time.Minute).UnixMilli()
			})
			c.change(b, &b.entries[i])
			r := judge(t, b)
			require.Equal(t, 1, r.ExitCode())
			require.Positive(t, r.Counts[c.want], "%v", r.Examples)
			require.LessOrEqual(t, len(r.Examples), 2, "%v", r.Examples)
		})
	}
}

func TestWhatIsNotKnownIsNotDemanded(t *testing.T) {
	b := newBook()
	b.jobs[0].Events = []store.JobEvent{{State: domain.JobEnabled, At: noon.Add(-10*time.Minute - time.Second)}} // those before are not kept
	r := judge(t, b)
	require.Empty(t, r.Examples)
	require.Equal(t, 50*6, r.Possible)
	require.Contains(t, r.Notes[len(r.Notes)-1], "1 jobs are older")

	b = newBook()
	b.jobs[0].Revisions[0].Spec.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: "whenever"}
	require.Equal(t, 2, judge(t, b).ExitCode())
}

// A time in which nothing had to happen is clean: a nightly job does not fail
// on a new or quiet installation.
func TestAQuietDatabaseIsClean(t *testing.T) {
	rare := func(b *book) {
		b.entries = nil
		b.jobs = b.jobs[:1]
		b.jobs[0].Revisions[0].Spec.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: "0 0 1 1 *"}
	}
	for name, change := range map[string]func(*book){
		"no job":            func(b *book) { b.jobs, b.entries = nil, nil },
		"a job once a year": rare,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			change(b)
			r := judge(t, b)
			require.Equal(t, 0, r.ExitCode(), "%+v", r)
			require.Contains(t, strings.Join(r.Notes, "; "), "nothing to judge")
		})
	}
}

// What a rule of retention or somebody deleted is not missing.
func TestDeletedRuns(t *testing.T) {
	b := newBook()
	until := noon.Add(-25 * time.Minute)
	b.jobs[0].RunsFrom = until
	n := 0
	b.entries = slices.DeleteFunc(b.entries, func(e store.LedgerEntry) bool {
		n++
		return e.JobID == 1 && e.FireAt < until.UnixMilli() && n%3 > 0 // some are left
	})
	r := judge(t, b)
	require.Empty(t, r.Examples)
	require.Equal(t, 24*6+1, r.Expected-(40*6+19)-59)
	require.Contains(t, r.Notes, "of 1 jobs runs were deleted before their age, by a rule of retention or by hand: earlier fire times are not judged")

	b.jobs[0].RunsFrom = noon.Add(time.Hour) // a clock that was set back
	require.Empty(t, judge(t, b).Examples)
	b.jobs[0].RunsFrom = time.Time{}
	require.NotEmpty(t, judge(t, b).Examples, "or else it would be")
}

// TestImportedRuns: a run that was imported fits no schedule and overlaps others. It is counted, and
// neither judged nor taken for a run that was asked for.
func TestImportedRuns(t *testing.T) {
	b := newBook()
	clean := judge(t, b)
	for _, e := range b.entries[len(b.entries)-300:][:3] {
		e.ID, e.Cause, e.FireAt = e.ID+1_000_000, domain.CauseImport, e.FireAt+1234
		e.GrantedAt, e.FinishedAt = e.FireAt-5000, e.FireAt+100_000
		b.entries = append(b.entries, e)
	}
	r := judge(t, b)
	require.Empty(t, r.Examples)
	require.Equal(t, 0, r.ExitCode())
	require.Equal(t, []int{clean.Ran, clean.Asked, clean.Expected}, []int{r.Ran, r.Asked, r.Expected})
	require.Contains(t, strings.Join(r.Notes, "\n"), "3 runs were imported after they had ended")
}
