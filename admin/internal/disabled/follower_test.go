package disabled

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// rows is a store with disabled executors and jobs that do not follow yet.
type rows struct {
	disabled      store.Disabled
	hold, release []store.HeldJob
	set           []store.SetJobStateParams
	answer        map[domain.JobID]error // of the first change of a job
}

func (r *rows) ListDisabled(context.Context) (store.Disabled, error) { return r.disabled, nil }

func (r *rows) ListJobsToHold(context.Context, int) (hold, release []store.HeldJob, err error) {
	return r.hold, r.release, nil
}

func (r *rows) SetJobState(_ context.Context, p store.SetJobStateParams) (store.JobView, error) {
	r.set = append(r.set, p)
	err := r.answer[p.ID]
	delete(r.answer, p.ID)
	return store.JobView{}, err
}

func follower(r *rows) (*Follower, *int) {
	changed := 0
	return NewFollower(Options{
		List: NewList(r), Store: r,
		Changed: func() { changed++ }, Logger: slog.New(slog.DiscardHandler),
	}), &changed
}

// Jobs of what is disabled are paused with the reason, and others are resumed. A job that
// finds no room in its quota stays paused and says why. A deleted one is left alone.
func TestJobsFollowTheList(t *testing.T) {
	t.Parallel()
	r := &rows{
		hold:    []store.HeldJob{{Tenant: 7, ID: 1, By: 7}, {Tenant: 7, ID: 2, By: 8, Note: "moving"}, {Tenant: 7, ID: 5, By: 8}},
		release: []store.HeldJob{{Tenant: 7, ID: 3, By: 9}, {Tenant: 7, ID: 4, By: 9}},
		answer:  map[domain.JobID]error{4: domain.Errorf(domain.CodeQuotaExceeded, "no more jobs"), 5: domain.Errorf(domain.CodeNotFound, "gone")},
	}
	f, changed := follower(r)
	require.NoError(t, f.HoldJobs(t.Context()))
	type change struct {
		id            domain.JobID
		state         domain.JobState
		note          string
		hold, release int64
	}
	var got []change
	for _, p := range r.set {
		require.Equal(t, "carillon", p.By)
		got = append(got, change{p.ID, p.State, p.Note, p.Hold, p.Release})
	}
	require.Equal(t, []change{
		{1, domain.JobPaused, "the tenant is disabled", 7, 0},
		{2, domain.JobPaused, "the executor is disabled: moving", 8, 0},
		{5, domain.JobPaused, "the executor is disabled", 8, 0},
		{3, domain.JobEnabled, "", 0, 9},
		{4, domain.JobEnabled, "", 0, 9},
		{4, domain.JobPaused, "not resumed: no more jobs", 0, 0},
	}, got)
	require.Equal(t, 1, *changed)
}

// A change counts on this node at once. The sessions follow at the next look.
func TestAChangeCountsAtOnce(t *testing.T) {
	t.Parallel()
	r := &rows{}
	f, _ := follower(r)
	ended := make(chan bool, 1)
	f.opt.EndIdle = func(disabled func(domain.TenantID, domain.ExecutorID) bool) int {
		select {
		case ended <- disabled(7, 8):
		default:
		}
		return 1
	}
	require.False(t, f.opt.List.Has(7, 8))
	r.disabled.Executors = map[domain.ExecutorID]bool{8: true}
	f.Changed(t.Context())
	require.True(t, f.opt.List.Has(7, 8))
	require.False(t, f.opt.List.Has(7, 9))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	require.True(t, <-ended)
	cancel()
	<-done
}
