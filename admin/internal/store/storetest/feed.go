package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// takeEvents takes all events whose time has come and returns those of a tenant.
func takeEvents(t testing.TB, feed store.Feed, tenant domain.TenantID) (mine []domain.AlertEvent) {
	t.Helper()
	const most = 1000
	for {
		taken, err := feed.TakeEvents(t.Context(), most)
		require.NoError(t, err)
		for _, e := range taken {
			if e.TenantID == tenant {
				mine = append(mine, e)
			}
		}
		if len(taken) < most {
			return mine
		}
	}
}

// alertsOf takes the events that are new and returns this tenant's of a kind.
func (f *fixture) alertsOf(kind domain.AlertKind) (out []domain.AlertEvent) {
	f.t.Helper()
	for _, event := range takeEvents(f.t, f.s, f.tenant) {
		if event.Kind == kind {
			out = append(out, event)
		}
	}
	return out
}

// alertKinds takes the events that are new and returns the kinds of one run's.
func (f *fixture) alertKinds(e domain.Execution) (kinds []domain.AlertKind) {
	f.t.Helper()
	for _, event := range takeEvents(f.t, f.s, f.tenant) {
		if event.ExecutionID == e.ID {
			kinds = append(kinds, event.Kind)
		}
	}
	return kinds
}

// alerted are the runs of this tenant's alert events.
func (f *fixture) alerted() (runs []domain.ExecutionID) {
	f.t.Helper()
	for _, event := range takeEvents(f.t, f.s, f.tenant) {
		runs = append(runs, event.ExecutionID)
	}
	return runs
}
