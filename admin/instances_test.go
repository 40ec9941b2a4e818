package admin_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// The list of all instances has the network address of each process.
func TestInstancesHaveAddresses(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			n.startExecutor("shop", nil, func(e *executor.Executor) {
				executor.HandleFunc(e, "work", func(context.Context) error { return nil })
			})
			var list struct {
				Items []struct {
					ExecutorName string
					Instance     struct{ Host, Address string }
				}
			}
			n.do(http.MethodGet, "/api/v1/instances", nil, &list, 200)
			found := false
			for _, i := range list.Items {
				if i.ExecutorName == "shop" {
					found = true
					require.Equal(t, "127.0.0.1", i.Instance.Address)
					require.NotEmpty(t, i.Instance.Host)
				}
			}
			require.True(t, found)
		})
	}
}
