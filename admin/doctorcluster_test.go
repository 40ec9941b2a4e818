//go:build proof

package admin_test

import (
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// On three real servers, of Galera or group replication: nothing that is sound is
// called a trouble, the endpoint of another server and a lost majority are found,
// and the doctor takes no lease.
func TestDoctorOfACluster(t *testing.T) {
	t.Parallel()
	cluster := testenv.PrivateCluster(t, testenv.ClusterOptions{})
	config := doctorConfig(t)
	config.Database = "mysql:" + cluster.Members()[0].Database(t)
	got := diagnose(t, config, nil)
	require.Equal(t, "ok", got["database.group"])
	require.Equal(t, "ok", got["database.session"])
	require.Equal(t, "ok", got["database.privileges"])

	n := startNode(t, func(c *admin.Config) { c.DataDir, c.Database = config.DataDir, config.Database })
	got = diagnose(t, config, nil)
	for _, check := range []string{"database", "database.group", "database.session", "database.privileges", "database.keys", "database.connections", "cluster", "secrets"} {
		require.Equal(t, "ok", got[check], check)
	}
	other := config
	other.Database = "mysql:" + at(t, cluster.Members()[1].DSN(), config.Database)
	require.Equal(t, "warn endpoint_not_the_writer", diagnose(t, other, nil)["database.group"])
	n.stop()

	for _, m := range cluster.Members()[1:] {
		require.NoError(t, m.Kill())
	}
	n.eventually(func() bool {
		got := diagnose(t, config, nil) // Galera answers no question then
		return got["database.group"] == "fail group_without_quorum" || got["database"] == "fail database_unreachable"
	}, func() string { return "the majority is still there" })
}

// at is the DSN of another server with this one's database.
func at(t *testing.T, server, database string) string {
	t.Helper()
	to, err := mysql.ParseDSN(server)
	require.NoError(t, err)
	from, err := mysql.ParseDSN(database[len("mysql:"):])
	require.NoError(t, err)
	to.DBName = from.DBName
	return to.FormatDSN()
}
