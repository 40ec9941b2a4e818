package admin_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// A node records what its API changes, chains it, keeps the head in a file, and finds what
// somebody with the database changes.
func TestANodeKeepsItsAuditLog(t *testing.T) {
	t.Parallel()
	var dir string
	n := startNode(t, func(c *admin.Config) {
		dir = c.DataDir
		c.Database = "sqlite:" + filepath.Join(dir, "carillon.db")
	})
	var e struct{ ID string }
	n.do("POST", "/api/v1/executors", map[string]any{"name": "shop"}, &e, 201)
	type verification struct {
		Unchained int64
		Head      struct {
			Seq  int64
			Hash string
		}
		Faults []struct{ Kind string }
	}
	var v verification
	n.eventually(func() bool {
		v = verification{}
		n.do("GET", "/api/v1/audit/verification", nil, &v, 200)
		return v.Head.Seq >= 2 && v.Unchained == 0 // the log-in of the test, too
	}, func() string { return "the entries are not chained" })
	require.Empty(t, v.Faults)
	var list struct {
		Items []struct{ Operation, ObjectID string }
	}
	n.do("GET", "/api/v1/audit?kind=executor", nil, &list, 200)
	require.Len(t, list.Items, 1)
	require.Equal(t, "create-executor", list.Items[0].Operation)
	require.Equal(t, e.ID, list.Items[0].ObjectID)
	n.eventually(func() bool {
		raw, err := os.ReadFile(filepath.Join(dir, "audit-heads.json"))
		heads := map[string]struct{ Hash string }{}
		if err != nil || json.Unmarshal(raw, &heads) != nil {
			return false
		}
		for _, h := range heads {
			if h.Hash == v.Head.Hash {
				return true
			}
		}
		return false
	}, func() string { return "the file does not have the head" })

	attacker, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "carillon.db")+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	defer func() { require.NoError(t, attacker.Close()) }()
	_, err = attacker.ExecContext(t.Context(), "UPDATE audit_log SET actor = 'somebody' WHERE operation = 'create-executor'")
	require.NoError(t, err)
	v = verification{}
	n.do("GET", "/api/v1/audit/verification", nil, &v, 200)
	require.Len(t, v.Faults, 1)
	require.Equal(t, "edited", v.Faults[0].Kind)
}

// Declared jobs leave an entry for each change, and none without a change.
func TestDeclaredJobsAreRecorded(t *testing.T) {
	t.Parallel()
	n := startNode(t, func(*admin.Config) {})
	declares := func(cron string) {
		ex := n.startExecutor("shop", nil, func(ex *executor.Executor) {
			executor.Handle(ex, "reconcile", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }, executor.Cron(cron))
		})
		n.eventually(func() bool { return ex.Health() == nil }, func() string { return fmt.Sprint(ex.Health()) })
	}
	type entry struct{ Operation, Actor, Kind, ObjectName string }
	entries := func() (out []entry) {
		var list struct{ Items []entry }
		n.do("GET", "/api/v1/audit?operation=declare-jobs", nil, &list, 200)
		return list.Items
	}
	declares("0 2 * * *")
	declares("0 2 * * *")
	n.eventually(func() bool { return len(entries()) == 1 }, func() string { return fmt.Sprint(entries()) })
	declares("0 3 * * *")
	n.eventually(func() bool { return len(entries()) == 2 }, func() string { return fmt.Sprint(entries()) })
	for _, e := range entries() {
		require.Equal(t, "job", e.Kind)
		require.Equal(t, "application", e.Actor)
		require.NotEmpty(t, e.ObjectName)
	}
}
