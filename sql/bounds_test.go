package schema_test

import (
	"io/fs"
	"regexp"
	"testing"

	schema "github.com/carillon-sched/carillon/sql"
)

// The bounds of the rows of a table.
const (
	quota     = "a quota counts its rows"
	bytes     = "the quota stored_bytes sums its rows"
	count     = "a constant bounds its rows"
	retention = "the retention deletes old rows"
	parent    = "its rows belong to a row of a bounded table, which has a bounded number of them"
	fixed     = "it has a row for each node, partition, tenant or like"
	operator  = "only platform administrators add rows"
	cluster   = "only nodes add rows, one for each start or each authority"
	outbox    = "rows leave when their work is done"
)

// bounds says for each table what keeps it from growing without end (docs/adr/0093).
var bounds = map[string]string{
	"cluster_values": fixed, "nodes": fixed, "node_states": fixed, "partition_leases": fixed,
	"signing_keys": cluster, "executor_authorities": cluster, "tenants": operator, "cells": operator, "quotas": fixed,
	"users": quota, "memberships": quota, "invitations": count, "refresh_tokens": retention, "api_keys": quota,
	"executors": quota, "executor_aliases": count, "handlers": count, "executor_builds": bytes, "instances": quota,
	"join_tokens": count, "join_token_boots": retention, "executor_denials": count, "refusals": count,
	"jobs": bytes, "job_revisions": bytes, "job_events": count, "triggers": parent, "trigger_waits": parent, "job_proposals": bytes,
	"refused_declarations": parent, "calendars": bytes, "calendar_versions": bytes, "job_calendars": parent,
	"scripts": bytes, "script_versions": bytes, "script_revisions": bytes, "job_scripts": parent, "job_callbacks": parent, "script_policies": count,
	"executions": retention, "request_keys": retention, "timers": quota, "timer_labels": bytes, "timer_counts": parent, "stored_bytes": fixed,
	"statistics": retention, "failure_counts": retention, "job_weeks": parent, "error_texts": count, "outbox": outbox, "statistics_journal": outbox, "timer_cancellations": retention, "retention_rules": parent, "run_purges": retention,
	"attempts": parent, "execution_progress": parent, "execution_steps": parent, "callbacks": outbox, "backfills": retention,
	"maintenance": retention, "job_slots": parent, "slot_waiters": parent, "waiting_runs": parent, "limits": parent, "limit_holders": parent, "limit_waiters": parent,
	"log_chunks": retention, "log_usage": retention, "alert_events": retention, "deliveries": retention, "alert_incidents": retention,
	"alert_rules": count, "alert_silences": count, "alert_settings": fixed, "alert_receivers": parent, "alert_channels": count, "connections": count, "deleted_documents": count, "document_sets": count,
	"audit_log": retention, "audit_chains": fixed,
	"bulk_operations": count, "bulk_items": parent,
}

var tables = regexp.MustCompile(`(?m)^CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)

// A table without a bound lets a tenant fill the database.
func TestEveryTableHasABound(t *testing.T) {
	for pattern, files := range map[string]fs.FS{"mysql/*.sql": schema.MySQL, "sqlite/*.sql": schema.SQLite} {
		names, err := fs.Glob(files, pattern)
		if err != nil || len(names) == 0 {
			t.Fatal("no migrations:", err)
		}
		found := map[string]bool{}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range tables.FindAllStringSubmatch(string(text), -1) {
				found[match[1]] = true
			}
		}
		for name := range found {
			if bounds[name] == "" {
				t.Errorf("%s: nothing bounds the table %s; say in bounds what does", pattern, name)
			}
		}
		for name := range bounds {
			if !found[name] {
				t.Errorf("%s: there is no table %s any more", pattern, name)
			}
		}
	}
}
