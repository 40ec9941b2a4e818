package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// known are the keys of events that a reader has seen, by tenant.
var known sync.Map

// takeEvents takes the events of all tenants from the outbox and returns the new ones of a
// tenant, as its reader would: one for each key. Missed runs, which a reader adds up, are left out.
func takeEvents(t testing.TB, s store.Feed, tenant domain.TenantID) (mine []domain.AlertEvent) {
	t.Helper()
	for _, e := range TakeOutbox[domain.AlertEvent](t, s, domain.TopicEvents) {
		if e.Kind == domain.AlertRunMissed {
			continue
		}
		if _, twice := known.LoadOrStore(fmt.Sprint(e.TenantID, e.DedupeKey), true); !twice && e.TenantID == tenant {
			mine = append(mine, e)
		}
	}
	return mine
}

// TakeOutbox takes all of a topic from the outbox.
func TakeOutbox[T domain.Callback | domain.AlertEvent](t testing.TB, s store.Feed, topic domain.Topic) (all []T) {
	t.Helper()
	for {
		rows, err := s.ReadOutbox(t.Context(), topic, 1000)
		require.NoError(t, err)
		if len(rows) == 0 {
			return all
		}
		var ids []int64
		for _, r := range rows {
			list, err := domain.DecodeList[T](r.Body)
			require.NoError(t, err)
			all, ids = append(all, list...), append(ids, r.ID)
		}
		require.NoError(t, s.DeleteOutbox(t.Context(), topic, ids))
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
