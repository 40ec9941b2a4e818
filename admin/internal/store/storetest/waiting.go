package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// attended is a wait that the caller's node looks after until its end.
func (f *fixture) attended(list ...domain.Execution) {
	waits := make([]store.Wait, len(list))
	for i, e := range list {
		waits[i] = store.Wait{Tenant: f.tenant, ID: e.ID, Reason: domain.ReasonWaitInstance, Message: "full"}
	}
	f.wait(waits)
}

// A run that waits for an instance keeps its deadline when a run of its job that
// waits beside it gives up.
func testDeadlineIsKept(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { serial(s); s.DispatchTimeout = 10 * time.Second })
	first, second := f.runAt(j, f.now().Add(-time.Second)), f.run(j)
	f.attended(first, second)
	before := f.find(first)
	require.Equal(t, before.ExpireAt, before.WakeAt, "nobody has to look before its wait is over")
	f.age(second, 10*time.Second)
	require.Empty(t, identify(f.sweep().Dispatch), "who waits for an instance is woken by room there")
	require.Equal(t, domain.Missed, f.find(second).State)
	require.Equal(t, before, f.find(first))

	f.age(first, 10*time.Second)
	require.Equal(t, store.OfferDiscarded, f.offerTo(f.instance, first)[0].Status, "an offer that comes too late is none")
	ended := f.find(first)
	require.Equal(t, domain.Missed, ended.State)
	require.Equal(t, domain.ReasonNoExecutor, ended.Reason)
	f.start(f.run(j))
}

// lines are the tenant's lines in which runs wait.
func (f *fixture) lines() (mine []store.WaitingLine) {
	f.t.Helper()
	const page = 3
	for after := int64(0); ; {
		list, err := f.s.WaitingLines(f.ctx, after, page)
		f.ok(err)
		for _, l := range list {
			require.Greater(f.t, l.Line, after)
			if after = l.Line; l.Tenant == f.tenant {
				mine = append(mine, l)
			}
		}
		if len(list) < page {
			return mine
		}
	}
}

// What waits in the database can be loaded by line, and a node can ask whether what
// it has in memory still waits.
func testWaiting(t *testing.T, f *fixture) {
	j := f.job(nil)
	now := f.now()
	late, soon, polled, running := f.runAt(j, now), f.runAt(j, now.Add(-time.Minute)), f.run(j), f.start(f.run(j))
	require.Empty(t, f.lines())
	line, narrow := domain.LineNumber(f.executor, "close-day"), domain.LineNumber(f.executor, "close-day", "zone=a")
	wait := func(e domain.Execution, line int64, anyone bool) {
		f.wait([]store.Wait{{Tenant: f.tenant, ID: e.ID, Reason: domain.ReasonWaitInstance, Message: "full", Line: line, Anyone: anyone}})
	}
	wait(late, line, false)
	wait(soon, line, true)
	wait(soon, line, true) // once more
	f.wait([]store.Wait{{Tenant: f.tenant, ID: polled.ID, Reason: domain.ReasonWaitLimit, For: time.Minute}})
	require.Equal(t, []store.WaitingLine{{Line: line, Tenant: f.tenant, Executor: f.executor, Next: soon.ID, First: soon.Precedence().Truncate(time.Millisecond)}}, f.lines())
	list := func(p store.ListWaitingParams) []domain.ExecutionID {
		if p.Line == 0 {
			p.Line = line
		}
		got, err := f.s.ListWaiting(f.ctx, p)
		f.ok(err)
		return identify(got)
	}
	own := store.ListWaitingParams{Partitions: allPartitions, Read: 100, Limit: 100}
	require.Equal(t, []domain.ExecutionID{soon.ID, late.ID}, list(own))
	newest, first, read, foreign, others := own, own, own, own, own
	newest.Newest = true
	require.Equal(t, []domain.ExecutionID{late.ID, soon.ID}, list(newest))
	first.Limit = 1
	require.Equal(t, []domain.ExecutionID{soon.ID}, list(first))
	read.Read = 1
	read.Unattended = func(ids []domain.ExecutionID) []domain.ExecutionID {
		require.Equal(t, []domain.ExecutionID{soon.ID}, ids)
		return nil
	}
	require.Empty(t, list(read), "no more is looked at")
	foreign.Partitions = slices.DeleteFunc(slices.Clone(allPartitions), func(p int) bool { return p == late.Partition })
	require.Empty(t, list(foreign), "they are another node's")
	others.Partitions = nil
	require.Equal(t, []domain.ExecutionID{soon.ID}, list(others), "those that each node may take")
	require.Eventually(t, func() bool { return len(list(others)) == 2 }, 10*time.Second, 50*time.Millisecond, "the others after a while")

	wait(polled, narrow, false)
	require.Len(t, f.lines(), 2)
	require.Equal(t, []domain.ExecutionID{polled.ID}, list(store.ListWaitingParams{Line: narrow, Partitions: allPartitions, Read: 9, Limit: 9}))
	f.start(polled)
	require.Len(t, f.lines(), 1, "its place goes with its wait")
	// A place that stays behind is removed when it is read, whatever ended the run.
	f.ok(f.s.SetAside(f.ctx, map[domain.ExecutionID]error{soon.ID: errors.New("it cannot be read")}))
	require.Equal(t, soon.Precedence().Truncate(time.Millisecond), f.lines()[0].First)
	require.Equal(t, []domain.ExecutionID{late.ID}, list(own))
	require.Equal(t, late.Precedence().Truncate(time.Millisecond), f.lines()[0].First)

	// Runs of a line that was not known move to theirs.
	unknown := f.run(j)
	f.wait([]store.Wait{{Tenant: f.tenant, ID: unknown.ID, Reason: domain.ReasonWaitInstance}})
	require.Equal(t, []domain.ExecutionID{unknown.ID}, list(store.ListWaitingParams{Line: domain.LineNumber(f.executor), Partitions: allPartitions, Read: 9, Limit: 9}))
	wait(unknown, narrow, false)
	require.Len(t, f.lines(), 2)
	require.Equal(t, []domain.ExecutionID{unknown.ID}, list(store.ListWaitingParams{Line: narrow, Partitions: allPartitions, Read: 9, Limit: 9}))
	f.start(unknown)

	// Large inputs come in parts, and then the rest.
	const large, runs = 250 << 10, 40
	whole := domain.LineNumber(f.executor, "large")
	for i := range runs {
		e := planned(&j.Job, now.Add(time.Duration(i)*time.Millisecond), now)
		e.Cause, e.OccurrenceKey, e.Input = domain.CauseManual, "large "+e.ID.String(), []byte(`"`+strings.Repeat("x", large)+`"`)
		run, _, err := f.s.CreateExecution(f.ctx, e)
		f.ok(err)
		wait(run, whole, false)
	}
	seen := map[domain.ExecutionID]bool{}
	for range 2 {
		part := list(store.ListWaitingParams{Line: whole, Partitions: allPartitions, Read: 100, Limit: 100, Unattended: func(ids []domain.ExecutionID) []domain.ExecutionID {
			return slices.DeleteFunc(ids, func(id domain.ExecutionID) bool { return seen[id] })
		}})
		require.LessOrEqual(t, len(part)*large, 2*store.MaxListedInput)
		for _, id := range part {
			seen[id] = true
		}
	}
	require.Len(t, seen, runs)

	due, err := f.s.StillDue(f.ctx, []domain.ExecutionID{late.ID, running.ID, 4711})
	f.ok(err)
	require.Equal(t, map[domain.ExecutionID]int64{late.ID: 0}, due)

	other := f.job(nil)
	f.run(other)
	jobs, err := f.s.ListWaitingJobs(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Equal(t, []store.WaitingJob{{Job: j.ID, Revision: 1}, {Job: other.ID, Revision: 1}}, jobs)
}
