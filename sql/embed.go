// Package schema answers: which tables?
//
// The data definition is written by hand, once per database, in goose format:
// mysql/ for MySQL 8 and MariaDB 10.6 or newer, sqlite/ for the embedded
// database. Files with the same number make the same tables, so that one
// version number means one schema. 00001 is all of it as 0.1.0 has it, with each
// table in one place. A released file never changes; a change is a new file in
// both folders, first expanding, contracting a release later (compatible_test.go).
//
// MySQL commits each data definition statement by itself. Its files therefore
// run outside of transactions and use IF NOT EXISTS: a file that was broken
// off in the middle can simply be run again.
//
// Conventions: ids are BIGINT made by the application; instants are Unix
// milliseconds, 0 = none (executions.wake_at alone uses NULL, so that ended
// runs leave its index); flags are 0 or 1; names compare by bytes. Every table
// has tenant_id but those that serve the cluster as a whole: cluster_values,
// nodes, node_states, partition_leases, signing_keys, executor_authorities,
// refusals, tenants and users (a user may belong to several tenants through
// memberships). In executions and log_chunks what may be long comes last: SQLite
// reads a row's columns in their order, and a long one is on pages of its own.
package schema

import "embed"

// MySQL holds mysql/*.sql, SQLite sqlite/*.sql.
var (
	//go:embed mysql/*.sql
	MySQL embed.FS
	//go:embed sqlite/*.sql
	SQLite embed.FS
)
