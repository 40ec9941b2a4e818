package admin_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// TestDrainIsSeenBeforeItIsFelt: balancers and scrapes hear that the node
// stops while it still does all its work.
func TestDrainIsSeenBeforeItIsFelt(t *testing.T) {
	t.Parallel()
	n := startNode(t, func(c *admin.Config) { c.DrainDelay = 5 * time.Second })
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "tick", func(context.Context) error { return nil })
	})
	job := n.newJob("shop", "tick", nil)
	n.do(http.MethodGet, "/readyz", nil, nil, 200)
	require.Contains(t, n.scrape(), "\ncarillon_draining 0\n")

	stopped := make(chan struct{})
	go func() { defer close(stopped); n.stop() }()
	n.eventually(func() bool { return strings.Contains(n.scrape(), "\ncarillon_draining 1\n") }, func() string { return "the node does not say that it stops" })
	n.do(http.MethodGet, "/readyz", nil, nil, 503)
	n.do(http.MethodGet, "/healthz", nil, nil, 200)
	n.until(n.runNow(job, nil), "succeeded")
	<-stopped
	_, err := http.Get(n.admin.URL() + "/healthz")
	require.Error(t, err, "the port is closed")
}
