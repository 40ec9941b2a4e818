package followup

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// What an earlier version stored in another charset comes to a callback as UTF-8.
func TestCallbacksGetUTF8(t *testing.T) {
	t.Parallel()
	const stored, clean = "{\"city\":\"\xb0\xd9\"}", "{\"city\":\"\uFFFD\"}"
	end := endedInput{Input: []byte(stored), Output: []byte(stored)}
	end.truncate(proto.MaxInput)
	require.Equal(t, []string{clean, clean}, []string{string(end.Input), string(end.Output)})
}

// shop is a store with runs that have ended, of which callbacks are to follow.
type shop struct {
	rows    []domain.Callback
	runs    map[domain.ExecutionID]store.ExecutionView
	made    []domain.Execution
	known   map[string]bool // keys of runs that exist
	deleted []int64
	down    error
}

// ReadOutbox has one row with all callbacks, and one that cannot be read.
func (s *shop) ReadOutbox(context.Context, domain.Topic, int) ([]store.OutboxRow, error) {
	body, err := domain.EncodeList(s.rows)
	return []store.OutboxRow{{ID: 21, Body: body}, {ID: 22, Body: []byte("{")}}, err
}

func (s *shop) DeleteOutbox(_ context.Context, _ domain.Topic, ids []int64) error {
	s.deleted = append(s.deleted, ids...)
	return nil
}

func (s *shop) FindExecution(_ context.Context, _ domain.TenantID, id domain.ExecutionID) (store.ExecutionView, error) {
	if v, ok := s.runs[id]; ok {
		return v, nil
	}
	return store.ExecutionView{}, domain.Errorf(domain.CodeNotFound, "no such run")
}

func (s *shop) FindExecutor(context.Context, domain.TenantID, domain.ExecutorID) (domain.Executor, error) {
	return domain.Executor{ID: 8}, nil
}

func (s *shop) FindHandler(context.Context, domain.TenantID, domain.ExecutorID, string) (domain.Handler, error) {
	return domain.Handler{}, domain.Errorf(domain.CodeNotFound, "it may come later")
}

func (s *shop) JobSpec(context.Context, domain.TenantID, domain.JobID, int64) (*domain.JobSpec, error) {
	return &domain.JobSpec{OnFailure: domain.FollowUp{Handler: "sorry"}, OnSuccess: domain.FollowUp{Handler: "thanks"}}, nil
}

func (s *shop) CreateExecution(_ context.Context, e domain.Execution) (domain.Execution, bool, error) {
	created := s.down == nil && !s.known[e.OccurrenceKey]
	s.known[e.OccurrenceKey] = true
	if created {
		s.made = append(s.made, e)
	}
	return e, created, s.down
}

// A run is made of each callback, once, and the row goes. A callback whose run is gone, and a
// row that cannot be read, go too. While the database does not take the run, the row stays.
func TestARunFollowsAnother(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 9, 0, 0, 123456, time.UTC)
	failed := store.ExecutionView{Execution: domain.Execution{ID: 1, TenantID: 7, State: domain.Failed, Message: "no answer", Executor: 8}, JobName: "close", Handler: "close-day"}
	s := &shop{rows: []domain.Callback{{Tenant: 7, ID: 1}, {Tenant: 7, ID: 2}}, runs: map[domain.ExecutionID]store.ExecutionView{1: failed}, known: map[string]bool{}}
	var handlers []string
	later := 0
	f := &Starter{
		Store: s, NewID: func() int64 { return 99 }, Now: func() time.Time { return now }, Later: func(...domain.Execution) { later++ }, Logger: slog.New(slog.DiscardHandler),
		Job: func(_ context.Context, e domain.Executor, h domain.Handler, kind domain.JobKind) (store.JobView, error) {
			require.Equal(t, domain.JobCallback, kind)
			handlers = append(handlers, h.Name)
			return store.JobView{Job: domain.Job{ID: 5, Executor: e.ID, Revision: 3}}, nil
		},
	}
	require.NoError(t, f.Start(t.Context()))
	require.Equal(t, []string{"sorry"}, handlers)
	require.Equal(t, []int64{21, 22}, s.deleted)
	require.Len(t, s.made, 1)
	e := s.made[0]
	require.Equal(t, []any{domain.ExecutionID(99), domain.TenantID(7), domain.JobID(5), domain.CauseParent, "run:1", now.Truncate(time.Millisecond)}, []any{e.ID, e.TenantID, e.JobID, e.Cause, e.RequestedBy, e.FireAt})
	var in struct{ RunID, State, Error string }
	require.NoError(t, json.Unmarshal(e.Input, &in))
	require.Equal(t, []string{"1", "failed", "no answer"}, []string{in.RunID, in.State, in.Error})

	require.NoError(t, f.Start(t.Context()), "another node was quicker")
	require.Equal(t, []int{1, 1}, []int{len(s.made), later})
	s.deleted, s.down = nil, domain.Errorf(domain.CodeUnavailable, "no database")
	require.Error(t, f.Start(t.Context()))
	require.Empty(t, s.deleted)
}
