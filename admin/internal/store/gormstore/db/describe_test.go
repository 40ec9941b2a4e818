package db

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestMultiWritersAreFatal(t *testing.T) {
	for name, c := range map[string]struct {
		set   map[string]string
		fatal bool
	}{
		"galera":           {map[string]string{"wsrep_on": "ON"}, true},
		"one writer":       {map[string]string{"wsrep_on": "OFF"}, false},
		"group, primary":   {map[string]string{"group_replication_group_name": "A", "group_replication_single_primary_mode": "ON"}, false},
		"group of writers": {map[string]string{"group_replication_group_name": "A", "group_replication_single_primary_mode": "OFF"}, true},
		"plugin, no group": {map[string]string{"group_replication_group_name": "", "group_replication_single_primary_mode": "OFF"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.set["innodb_flush_log_at_trx_commit"] = "1"
			found := mysqlFindings(c.set, func(v string) bool { return c.set[v] == "ON" })
			require.Equal(t, c.fatal, len(found) == 1)
			for _, f := range found {
				require.Equal(t, domain.Finding{Code: "multi_writer", Fatal: true, Message: f.Message}, f)
				require.True(t, strings.Contains(f.Message, "--allow-multi-writer"))
			}
		})
	}
}
