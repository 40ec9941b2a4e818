package db

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestWhatIsFoundInClusters(t *testing.T) {
	gr := func(more ...string) map[string]string {
		set := map[string]string{"group_replication_group_name": "A", "group_replication_single_primary_mode": "ON", "group_replication_unreachable_majority_timeout": "10"}
		for i := 0; i < len(more); i += 2 {
			set[more[i]] = more[i+1]
		}
		return set
	}
	galera := func(options string) map[string]string {
		return map[string]string{"wsrep_on": "ON", "wsrep_provider": "LIBGALERA_SMM.SO", "wsrep_provider_options": options}
	}
	for name, c := range map[string]struct {
		set   map[string]string
		found string
		fatal bool
	}{
		"galera":              {galera("PC.IGNORE_SB = FALSE; PC.IGNORE_QUORUM = FALSE"), "", false},
		"galera, both halves": {galera("PC.WEIGHT = 1; PC.IGNORE_SB = TRUE"), "split_brain_allowed", true},
		"galera, no quorum":   {galera("PC.IGNORE_QUORUM = YES"), "split_brain_allowed", true},
		"wsrep off":           {map[string]string{"wsrep_on": "OFF", "wsrep_provider_options": "PC.IGNORE_SB = TRUE"}, "", false},
		"wsrep, no provider":  {map[string]string{"wsrep_on": "ON", "wsrep_provider": "NONE", "wsrep_provider_options": "PC.IGNORE_SB = TRUE"}, "", false},
		"group, primary":      {gr(), "", false},
		"group of writers":    {gr("group_replication_single_primary_mode", "OFF"), "multi_writer", true},
		"group that waits":    {gr("group_replication_unreachable_majority_timeout", "0"), "group_waits_forever", false},
		"plugin, no group":    {gr("group_replication_group_name", "", "group_replication_single_primary_mode", "OFF"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			c.set["innodb_flush_log_at_trx_commit"] = "1"
			found := mysqlFindings(c.set, func(v string) bool { return c.set[v] == "ON" })
			if c.found == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, domain.Finding{Code: c.found, Fatal: c.fatal, Message: found[0].Message}, found[0])
		})
	}
}

func TestSettingsThatEndanger(t *testing.T) {
	for name, c := range map[string]struct {
		kind, version string
		set           map[string]string
		want          string
	}{
		"mysql":                  {"mysql", "8.0.46-0ubuntu0.24.04.2", nil, ""},
		"a new mysql":            {"mysql", "9.7.0", nil, ""},
		"an old mysql":           {"mysql", "5.7.44-log", nil, "version_unsupported"},
		"mariadb":                {"mariadb", "10.11.6-MariaDB-0+deb12u1", nil, ""},
		"mariadb behind a proxy": {"mariadb", "5.5.5-10.6.1-MariaDB", nil, ""},
		"an old mariadb":         {"mariadb", "10.5.29-MariaDB", nil, "version_unsupported"},
		"a version of its own":   {"mysql", "vitess", nil, ""},
		"statements":             {"mysql", "8.0.1", map[string]string{"log_bin": "ON", "binlog_format": "STATEMENT"}, "statement_binlog"},
		"statements, no log":     {"mysql", "8.0.1", map[string]string{"log_bin": "OFF", "binlog_format": "STATEMENT"}, ""},
		"rows":                   {"mysql", "8.0.1", map[string]string{"log_bin": "ON", "binlog_format": "ROW"}, ""},
		"packets":                {"mysql", "8.0.1", map[string]string{"max_allowed_packet": "16777216"}, ""},
		"small packets":          {"mysql", "8.0.1", map[string]string{"max_allowed_packet": "1048576"}, "small_packets"},
		"no doublewrite":         {"mysql", "8.0.1", map[string]string{"innodb_doublewrite": "OFF"}, "no_doublewrite"},
		"doublewrite":            {"mysql", "8.0.1", map[string]string{"innodb_doublewrite": "DETECT_AND_RECOVER"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range settingFindings(c.kind, c.version, c.set, func(v string) bool { return c.set[v] == "ON" }) {
				got = append(got, f.Code)
				require.Equal(t, f.Code == "version_unsupported" || f.Code == "statement_binlog", f.Fatal)
			}
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

func TestEnginesThatDoNotLockAreRefused(t *testing.T) {
	for version, refused := range map[string]bool{"8.0.11-TiDB-v8.5.6": true, "8.0.40-Vitess": true, "10.11.19-MariaDB": false, "9.4.0": false} {
		found := foreignEngine(version)
		require.Equal(t, refused, len(found) == 1, version)
	}
}
