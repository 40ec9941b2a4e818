package admin_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// doctorConfig is of a node that would work.
func doctorConfig(t *testing.T) admin.Config {
	return admin.Config{DataDir: filepath.Join(t.TempDir(), "data"), HTTPAddress: "127.0.0.1:0", ExecutorAddress: "127.0.0.1:0"}
}

// diagnose returns the lines of each check as status and code, and looks that they
// say what to do.
func diagnose(t *testing.T, config admin.Config, ask func(context.Context) error) map[string]string {
	t.Helper()
	report := admin.Diagnose(t.Context(), admin.Diagnosing{Config: config, Ask: ask})
	out := map[string]string{}
	for _, r := range report.Results {
		line := strings.TrimSpace(string(r.Status) + " " + r.Code)
		out[r.Check] = strings.TrimPrefix(out[r.Check]+", "+line, ", ")
		if r.Status == admin.DiagnosisWarning || r.Status == admin.DiagnosisFailed {
			require.True(t, r.Code != "" && r.Do != "", "%+v", r)
			t.Logf("%s %s: %s -> %s", r.Check, line, r.Found, r.Do)
		}
		require.NotEmpty(t, r.Found, r.Check)
		require.NotContains(t, r.Found+r.Do, "tower-bell", "no secret is shown")
	}
	return out
}

// troubles are the checks that found something wrong.
func troubles(t *testing.T, config admin.Config) map[string]string {
	t.Helper()
	out := diagnose(t, config, nil)
	for check, line := range out {
		if !strings.Contains(line, "warn") && !strings.Contains(line, "fail") || check == "files" || check == "disk" {
			delete(out, check) // files and disk are this machine's
		}
	}
	return out
}

func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "history" && e.Name() != "audit-heads.json" { // a running node writes them when it has seen the database's
			out = append(out, e.Name())
		}
	}
	return out
}

// soundness has what the doctor wants to find in the database of a sound node, of add-ons.
var soundness []func(*node)

func (n *node) makeSound() {
	for _, do := range soundness {
		do(n)
	}
}

// Before the first start, beside a node, and after it; nothing is left behind.
func TestDoctorOfASoundNode(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			config := doctorConfig(t)
			config.Database = database(t, t.TempDir())
			if name == "sqlite" {
				config.Database = "" // in the data folder, which is not there either
			}
			require.Empty(t, troubles(t, config))
			require.NoDirExists(t, config.DataDir)

			n := startNode(t, func(c *admin.Config) { c.DataDir, c.Database = config.DataDir, config.Database })
			n.makeSound()
			before := files(t, config.DataDir)
			require.Empty(t, troubles(t, config))
			got := diagnose(t, config, nil)
			for _, check := range []string{"database", "database.settings", "database.migrations", "database.keys", "clock.nodes", "cluster", "zones", "secrets"} {
				require.Equal(t, "ok", got[check], check)
			}
			if name == "mysql" {
				for _, check := range []string{"database.session", "database.privileges", "database.connections", "clock"} {
					require.Equal(t, "ok", got[check], check)
				}
			}
			require.Equal(t, before, files(t, config.DataDir))

			n.stop()
			before = files(t, config.DataDir)
			require.Empty(t, troubles(t, config))
			require.Equal(t, before, files(t, config.DataDir))
		})
	}
}

// expiredFiles are a certificate that was good until yesterday, and its key.
func expiredFiles(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(-24 * time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return cert, key
}

// silent accepts connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, c *admin.Config)
		want   map[string]string
	}{
		"a setting that is refused": {func(_ *testing.T, c *admin.Config) { c.RunRetention = time.Hour }, map[string]string{"config": "fail config_refused"}},
		"a data folder":             {func(t *testing.T, c *admin.Config) { require.NoError(t, os.WriteFile(c.DataDir, nil, 0o600)) }, map[string]string{"data": "fail folder_is_a_file", "database": "fail database_unreadable"}},
		"the port of UI and API":    {func(t *testing.T, c *admin.Config) { c.HTTPAddress = silent(t) }, map[string]string{"port.http": "warn port_in_use"}},
		"the executors' port":       {func(t *testing.T, c *admin.Config) { c.ExecutorAddress = silent(t) }, map[string]string{"port.executors": "fail port_in_use"}},
		"the port of metrics":       {func(t *testing.T, c *admin.Config) { c.MetricsAddress = silent(t) }, map[string]string{"port.metrics": "fail port_in_use"}},
		"no address to dial": {func(_ *testing.T, c *admin.Config) { c.ExecutorAddress, c.InsecureBind = "0.0.0.0:0", true },
			map[string]string{"advertise": "fail advertise_no_address"}},
		"loopback to dial": {func(_ *testing.T, c *admin.Config) {
			c.ExecutorAddress, c.InsecureBind, c.AdvertiseAddress = "0.0.0.0:0", true, "localhost:7070"
		}, map[string]string{"advertise": "warn advertise_loopback"}},
		"a name to dial that nobody knows": {func(_ *testing.T, c *admin.Config) { c.AdvertiseAddress = "nowhere.invalid:7070" },
			map[string]string{"advertise": "warn advertise_unknown"}},
		"certificates": {func(t *testing.T, c *admin.Config) {
			c.TLSCertFile, c.TLSKeyFile = expiredFiles(t)
			c.ExecutorTLSCertFile, c.ExecutorTLSKeyFile, c.AdvertiseAddress = c.TLSCertFile, c.TLSKeyFile, "127.0.0.1:7070"
		}, map[string]string{"certificate.http": "fail certificate_expired", "certificate.executors": "fail certificate_expired, warn certificate_of_another_name"}},
		"all that is away or hangs": {func(t *testing.T, c *admin.Config) {
			c.HotStore = "redis://:tower-bell-64@" + silent(t) + "/0"
			c.Database = "mysql://a:tower-bell-64@" + silent(t) + "/carillon"
		}, map[string]string{
			"hot-store": "warn hot_store_unreachable", "database": "fail database_unreachable",
		}},
		"a database that is away": {func(t *testing.T, c *admin.Config) {
			c.Database = "mysql://a:tower-bell-64@" + closedPort(t) + "/carillon"
		},
			map[string]string{"database": "fail database_unreachable"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := doctorConfig(t)
			c.change(t, &config)
			require.Equal(t, c.want, troubles(t, config))
		})
	}
}

// Who has the ports: a node that serves, one that does not, and somebody else.
func TestDoctorAsksWhoHasThePorts(t *testing.T) {
	t.Parallel()
	config := doctorConfig(t)
	config.HTTPAddress, config.ExecutorAddress = silent(t), silent(t)
	got := diagnose(t, config, func(context.Context) error { return nil })
	require.Equal(t, "ok", got["port.http"])
	require.Equal(t, "ok", got["port.executors"])
	got = diagnose(t, config, func(context.Context) error { return errors.New("it waits for its database") })
	require.Equal(t, "fail port_in_use", got["port.http"])
	require.Equal(t, "fail port_in_use", got["port.executors"])
}

// What is kept in the database: keys, migrations, sealed values, connections.
func TestDoctorOfWhatIsKept(t *testing.T) {
	t.Parallel()
	n := startNode(t, func(c *admin.Config) {
		c.AddOns = admin.Settings{"connection-allow": {"127.0.0.0/8"}}
	})
	var c struct{ ID string }
	n.do("POST", "/api/v1/connections", map[string]any{
		"name": "orders", "spec": map[string]any{"broker": "nats", "addresses": []string{closedPort(t)}}, "secrets": map[string]any{"password": "tower-bell-64"},
	}, &c, 201)
	n.makeSound()
	n.stop()
	config := doctorConfig(t)
	config.DataDir, config.AddOns = n.dir, admin.Settings{"connection-allow": {"127.0.0.0/8"}}
	require.Equal(t, map[string]string{"brokers": "warn broker_unreachable"}, troubles(t, config))

	database, err := sql.Open("sqlite", filepath.Join(n.dir, "carillon.db"))
	require.NoError(t, err)
	defer database.Close()
	exec := func(statement string, args ...any) {
		t.Helper()
		_, err := database.ExecContext(t.Context(), statement, args...)
		require.NoError(t, err)
	}
	exec("UPDATE connections SET secrets = ?", []byte("junk"))
	require.Equal(t, map[string]string{"brokers": "warn broker_unreachable", "secrets": "fail sealed_unreadable"}, troubles(t, config))
	exec("DELETE FROM connections")
	exec("DROP INDEX uq_timers_key")
	require.Equal(t, map[string]string{"database.keys": "fail unique_key_missing"}, troubles(t, config))
	exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")
	require.Equal(t, map[string]string{"database.migrations": "fail database_of_a_newer_version"}, troubles(t, config))
	exec("DELETE FROM goose_db_version WHERE version_id = 99")
	exec("CREATE TABLE noted AS SELECT version_id, is_applied FROM goose_db_version WHERE version_id > 0")
	exec("DELETE FROM goose_db_version WHERE version_id > 0")
	exec("CREATE UNIQUE INDEX uq_timers_key ON timers (job_id, timer_key)")
	got := diagnose(t, config, nil)
	require.Equal(t, "ok", got["database.migrations"], "tables that nobody has noted: they are made at the first start")
	exec("INSERT INTO goose_db_version (version_id, is_applied) SELECT version_id, is_applied FROM noted ORDER BY version_id")
	exec("DROP TABLE noted")

	key := filepath.Join(n.dir, "sealing.key")
	require.Empty(t, troubles(t, config))
	require.NoError(t, os.Chmod(key, 0o644))
	require.Equal(t, map[string]string{"secrets": "fail sealing_key_unusable"}, troubles(t, config))
	require.NoError(t, os.Remove(key))
	require.Equal(t, map[string]string{"secrets": "fail sealing_key_missing"}, troubles(t, config))
	require.NoFileExists(t, key)
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("ab", 32)), 0o600))
	require.Equal(t, map[string]string{"secrets": "fail sealing_key_of_another_cluster"}, troubles(t, config))
	require.NoError(t, os.Chmod(filepath.Join(n.dir, "carillon.db"), 0o644))
	require.Equal(t, "warn database_readable", troubles(t, config)["database"])
}

// A server with everything wrong that a server can have, and users with less than
// they need.
func TestDoctorOfAnUnsoundServer(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateServer(t, "--log-bin=bin", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--binlog-format=STATEMENT",
		"--max-allowed-packet=1M", "--max-connections=40", "--innodb-doublewrite=0")
	dsn := server.Database(t)
	config := doctorConfig(t)
	config.Database = "mysql:" + dsn
	settings := func() []string {
		list := strings.Split(troubles(t, config)["database.settings"], ", ")
		slices.Sort(list)
		return list
	}
	require.Equal(t, []string{
		"fail statement_binlog", "warn binlog_not_durable", "warn no_doublewrite", "warn not_durable", "warn small_packets",
	}, settings())
	_, err := admin.New(t.Context(), config)
	require.ErrorContains(t, err, "refuse the database: binlog_format is STATEMENT")

	root, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	defer root.Close()
	exec := func(statement string) {
		t.Helper()
		_, err := root.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	exec("SET GLOBAL binlog_format = 'ROW'")
	require.NoError(t, admin.Migrate(t.Context(), config))
	require.Equal(t, "warn too_few_connections", troubles(t, config)["database.connections"])
	exec("SET GLOBAL read_only = 1")
	require.Contains(t, settings(), "fail read_only")
	exec("SET GLOBAL read_only = 0")

	parsed, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	exec("CREATE USER reader@'%' IDENTIFIED BY 'tower-bell-64'")
	exec("CREATE USER worker@'%' IDENTIFIED BY 'tower-bell-64'")
	exec("GRANT SELECT ON " + parsed.DBName + ".* TO reader@'%'")
	exec("CREATE ROLE work")
	exec("GRANT SELECT, INSERT, UPDATE, DELETE ON " + parsed.DBName + ".* TO work")
	exec("GRANT work TO worker@'%'")
	exec("SET DEFAULT ROLE work " + map[bool]string{true: "FOR worker@'%'", false: "TO worker@'%'"}[testenv.Chosen() == testenv.MariaDB])
	as := func(user, password string) string {
		t.Helper()
		other := config
		other.Database = "mysql://" + user + ":" + password + "@" + parsed.Addr + "/" + parsed.DBName
		got := troubles(t, other)
		return got["database"] + got["database.privileges"]
	}
	require.Equal(t, "fail privileges_missing, warn migration_privileges_missing", as("reader", "tower-bell-64"))
	require.Equal(t, "warn migration_privileges_missing", as("worker", "tower-bell-64"))
	require.Equal(t, "fail database_refuses", as("worker", "tower-bell-65"))
	config.Database = "mysql://worker:tower-bell-64@" + parsed.Addr + "/nowhere"
	require.Equal(t, map[string]string{"database": "fail database_refuses"}, troubles(t, config))

	var tables int
	require.NoError(t, root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'carillon_doctor%'").Scan(&tables))
	require.Zero(t, tables)
}
