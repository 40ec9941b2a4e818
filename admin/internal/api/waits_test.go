package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// TestManyLongPollsOfOneUser: those over the limit are told at once, and nobody
// else notices, not even the same user who does not wait.
func TestManyLongPollsOfOneUser(t *testing.T) {
	const perUser, perTenant, asked = 20, 30, 1000
	w := newWorld(t, func(d *Deps) { d.Waits = web.Waits{PerUser: perUser, PerTenant: perTenant} })
	job := w.job("acme", "nightly", w.executor("acme", "shop"))
	other := w.job("beta", "nightly", w.executor("beta", "shop"))
	waiting, release := make(chan struct{}, asked), make(chan struct{})
	w.runner.wait = func(ctx context.Context, _ domain.TenantID, _ domain.ExecutionID) (domain.Execution, error) {
		waiting <- struct{}{}
		select {
		case <-release:
			return domain.Execution{}, nil
		case <-ctx.Done():
			return domain.Execution{}, ctx.Err()
		}
	}
	server := httptest.NewServer(w.api)
	defer server.Close()
	client := server.Client()
	bearers := map[string]string{}
	for _, who := range []string{"acme/operator", "acme/editor", "acme/admin", "beta/operator"} {
		bearers[who] = w.as(who)
	}
	client.Transport.(*http.Transport).MaxConnsPerHost = 0
	ask := func(who, job, wait string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+web.Base+"/jobs/"+job+"/run?wait="+wait, nil)
		if err != nil {
			return 0
		}
		req.Header.Set("Authorization", "Bearer "+bearers[who])
		res, err := client.Do(req)
		if err != nil {
			return 0
		}
		defer res.Body.Close()
		if res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") == "" {
			return -1
		}
		return res.StatusCode
	}
	var polls sync.WaitGroup
	answers := make(chan int, asked+perTenant)
	for range asked {
		polls.Go(func() { answers <- ask("acme/operator", job.ID, "30s") })
	}
	for range asked - perUser { // those that wait do not answer
		require.Equal(t, http.StatusTooManyRequests, <-answers)
	}
	for range perUser {
		<-waiting
	}
	// The others of the tenant have what is left of its share, others all of theirs.
	for range perTenant - perUser {
		polls.Go(func() { answers <- ask("acme/editor", job.ID, "30s") })
		<-waiting
	}
	require.Equal(t, http.StatusTooManyRequests, ask("acme/admin", job.ID, "30s"))
	require.Equal(t, http.StatusCreated, ask("acme/operator", job.ID, "0s"))
	polls.Go(func() { answers <- ask("beta/operator", other.ID, "30s") })
	<-waiting
	p := w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run?wait=1s", nil).problem(429, "too_many_waiting")
	require.Contains(t, p.Detail, "20 requests of")

	close(release)
	polls.Wait()
	for range perTenant + 1 {
		require.Equal(t, http.StatusCreated, <-answers)
	}
	require.Equal(t, http.StatusCreated, ask("acme/operator", job.ID, "30s"), "there is room again")
}
