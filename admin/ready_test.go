package admin_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/carillon-sched/carillon/admin"
)

// A node that reads but cannot write (its disk is full, another process has locked its
// database) says after a while that it is not ready, and is again when it can.
func TestANodeThatCannotWriteIsNotReady(t *testing.T) {
	t.Parallel()
	var file string
	n := startNode(t, func(c *admin.Config) {
		file = filepath.Join(c.DataDir, "carillon.db")
		c.Database = "sqlite:" + file
	})
	ready := func(want int) {
		n.eventually(func() bool {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.url+"/readyz", nil)
			require.NoError(t, err)
			res, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			return res.StatusCode == want
		}, func() string { return "readyz does not become " + http.StatusText(want) })
	}
	ready(http.StatusOK)
	other, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	other.SetMaxOpenConns(1)
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	ready(http.StatusServiceUnavailable)
	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	ready(http.StatusOK)
}
