package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
)

// TestNeeds has two runs of a serial job with a fixed delay, one run of a job that covers,
// one of a job without a slot, and a part of the last one.
func TestNeeds(t *testing.T) {
	serial := &domain.JobSpec{Blocking: domain.BlockSerial, Schedule: domain.ScheduleSpec{Kind: domain.ScheduleFixedDelay}}
	facts := []run.Fact{
		{ID: 1, Tenant: tenant, Job: 1, Executor: executor, FireAt: 10, Spec: serial},
		{ID: 2, Tenant: tenant, Job: 1, Executor: executor, FireAt: 20, Spec: serial},
		{ID: 3, Tenant: tenant, Job: 2, Executor: executor, FireAt: 30, Spec: &domain.JobSpec{Blocking: domain.BlockCover}},
		{ID: 4, Tenant: tenant, Job: 3, Executor: executor + 1, FireAt: 40, Spec: &domain.JobSpec{Blocking: domain.BlockParallel}},
		{ID: 5, Tenant: tenant, Job: 3, Executor: executor + 1, FireAt: 40, Parent: 4, Spec: &domain.JobSpec{Blocking: domain.BlockParallel, Parallelism: 1}},
	}
	key := domain.LimitKey{Tenant: tenant, Executor: executor}
	limited := run.Known{Limits: map[domain.LimitKey]bool{key: true}}
	all := []run.Place{{Precedence: 10, ID: 1}, {Precedence: 20, ID: 2}, {Precedence: 30, ID: 3}}
	for _, c := range []struct {
		name      string
		request   run.Request
		known     run.Known
		slots     bool
		covers    bool
		readSlots bool
		limits    []run.Place
		parents   []domain.ExecutionID
	}{
		{name: "touch", known: limited},
		{name: "admit", request: run.Request{Kind: run.Admit}, known: limited},
		{name: "offers", request: run.Request{Kind: run.Offers}, slots: true, covers: true},
		{name: "offers under a limit", request: run.Request{Kind: run.Offers}, known: limited, slots: true, covers: true, readSlots: true, limits: all},
		{name: "offers in maintenance", request: run.Request{Kind: run.Offers}, known: run.Known{Stopping: true}, slots: true, covers: true, readSlots: true},
		{name: "waits", request: run.Request{Kind: run.Waits}, known: limited, slots: true, covers: true, readSlots: true, limits: all},
		{name: "spreads", request: run.Request{Kind: run.Spreads}, known: limited, slots: true, covers: true},
		{name: "ends", request: run.Request{Kind: run.Ends}, known: limited, slots: true, parents: []domain.ExecutionID{4}},
		{name: "ends of one that lingers", request: run.Request{Kind: run.Ends, Lingering: []domain.ExecutionID{2}}, known: limited, slots: true, limits: all[1:2], parents: []domain.ExecutionID{4}},
		{name: "ends of parts", request: run.Request{Kind: run.Ends, Parents: []domain.ExecutionID{9, 4}}, slots: true, parents: []domain.ExecutionID{4, 9}},
		{name: "sweeps", request: run.Request{Kind: run.Sweeps}, known: limited, slots: true, parents: []domain.ExecutionID{4}},
		{name: "successors", request: run.Request{Kind: run.Successors}, known: limited, slots: true, readSlots: true, parents: []domain.ExecutionID{4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			needs := c.request.Needs(facts, c.known)
			require.Equal(t, c.readSlots, needs.ReadSlots)
			require.Equal(t, c.limits, needs.Limits[key])
			require.ElementsMatch(t, c.parents, c.request.ParentsOf(facts))
			if !c.slots {
				require.Empty(t, needs.Triggers)
				require.Empty(t, needs.Slots)
				return
			}
			require.Equal(t, []domain.JobID{1}, needs.Triggers, "once")
			require.Equal(t, map[domain.JobID]*run.SlotNeed{1: {Limit: 1, Runs: 2}, 2: {Limit: 1, Runs: 1, Covers: c.covers}}, needs.Slots)
			require.Equal(t, 2, needs.Slots[1].Depth())
			if c.covers {
				require.Greater(t, needs.Slots[2].Depth(), 100)
			}
		})
	}
}
