package calljob

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Calls take from their handler what becomes of lost ones and how long they wait;
// callbacks wait as it says, and run at least once.
func TestSettingsOfTheHandler(t *testing.T) {
	h := domain.Handler{Name: "close-day", Calls: &domain.JobSpec{OnLost: domain.OnLostFail, DispatchTimeout: time.Hour}}
	call, callback := Jobs{}.specOf("shop", h, Call), Jobs{}.specOf("shop", h, Callback)
	require.Equal(t, []any{domain.OnLostFail, time.Hour}, []any{call.OnLost, call.DispatchTimeout})
	require.Equal(t, []any{domain.OnLostRetry, time.Hour}, []any{callback.OnLost, callback.DispatchTimeout})
	h.Calls.DispatchTimeout = 0
	require.Equal(t, 24*time.Hour, ptr(Jobs{}.specOf("shop", h, Callback)).DispatchTimeout)
}

// A job whose settings are as they were written is followed, by their digest.
func TestTheDigestTellsEdits(t *testing.T) {
	for _, kind := range []Kind{Call, Callback} {
		s := Jobs{}.specOf("shop", domain.Handler{Name: "close-day"}, kind)
		written := digest(&s)
		if s.DispatchTimeout == 0 { // which an edit of its labels writes as what it means
			s.DispatchTimeout = domain.DefaultDispatchTimeout
		}
		s.Labels = map[string]string{"team": "shop"}
		require.Equal(t, written, digest(&s), "its labels are not the handler's")
		s.DispatchTimeout = time.Minute
		require.NotEqual(t, written, digest(&s), "somebody has edited it")
	}
}

func ptr[T any](v T) *T { return &v }

// played is a store with the jobs of one executor.
type played struct {
	store.Jobs
	jobs []store.JobView
}

func (p *played) ListJobs(_ context.Context, q store.ListJobsParams) (out []store.JobView, err error) {
	for _, v := range p.jobs {
		if v.Kind == q.Kind && (q.Handler == "" || q.Handler == v.Spec.Handler) {
			out = append(out, v)
		}
	}
	return out, nil
}

func (p *played) FindJobByName(_ context.Context, _ domain.TenantID, name string) (store.JobView, error) {
	for _, v := range p.jobs {
		if v.Spec.Name == name {
			return v, nil
		}
	}
	return store.JobView{}, domain.Errorf(domain.CodeNotFound, "no such job")
}

func (p *played) CreateJob(_ context.Context, j domain.Job, _ store.NextFireFunc) (store.JobView, error) {
	p.jobs = append(p.jobs, store.JobView{Job: j})
	return store.JobView{Job: j}, nil
}

// Timers and calls are told to the owner of their handler's jobs, or of their
// executor's, where there is only one.
func TestTheOwnerOfTimersAndCalls(t *testing.T) {
	job := func(handler, email string) store.JobView {
		return store.JobView{Job: domain.Job{Spec: domain.JobSpec{Name: handler + email, Handler: handler, Owner: domain.Owner{Email: email}}}}
	}
	for name, c := range map[string]struct {
		jobs []store.JobView
		want string
	}{
		"no jobs":                  {nil, ""},
		"of the handler":           {[]store.JobView{job("remind", "ann@example.com"), job("close", "ben@example.com"), job("remind", "")}, "ann@example.com"},
		"of the executor":          {[]store.JobView{job("close", "ben@example.com"), job("open", "ben@example.com")}, "ben@example.com"},
		"several of the executor":  {[]store.JobView{job("close", "ben@example.com"), job("open", "cleo@example.com")}, ""},
		"several, but the handler": {[]store.JobView{job("close", "ben@example.com"), job("open", "cleo@example.com"), job("remind", "ann@example.com")}, "ann@example.com"},
	} {
		for _, kind := range []Kind{Call, Callback, Timer} {
			j := Jobs{Store: &played{jobs: c.jobs}, NewID: func() int64 { return 7 }, Now: func() time.Time { return time.Unix(1e9, 0) }}
			made, err := j.For(t.Context(), domain.Executor{ID: 9, TenantID: 3, Name: "shop"}, domain.Handler{Name: "remind"}, kind)
			require.NoError(t, err, name)
			require.Equal(t, c.want, made.Spec.Owner.Email, name)
		}
	}
}

// A handler of the nodes says the retry of its calls and timers, for the built-in executor
// alone.
func TestAHandlerOfTheNodesHasARetry(t *testing.T) {
	often := domain.Retry{MaxAttempts: 10, Delay: 5 * time.Second, Backoff: 2, MaxDelay: 10 * time.Minute}
	j := Jobs{Handlers: nodehandler.List{{Name: "publish", CallRetry: often}}}
	require.Equal(t, often, j.specOf(domain.BuiltInExecutor, domain.Handler{Name: "publish"}, Call).Retry)
	for _, other := range []domain.JobSpec{
		j.specOf("shop", domain.Handler{Name: "publish"}, Call), j.specOf(domain.BuiltInExecutor, domain.Handler{Name: "http"}, Call),
	} {
		require.Equal(t, 1, other.Retry.MaxAttempts)
	}
}
