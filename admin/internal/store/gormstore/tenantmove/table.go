package tenantmove

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// group is a table whose rows are found by the tenant, with those that are found by its
// rows.
type group struct {
	table string
	// key: rows are found by this column, of which the tenant's values are listed by
	// index, if one is named. Empty: by a primary key that begins with the tenant.
	key, index string
	children   []child
	// late: it is copied only while the tenant starts nothing, because the target's nodes
	// would act upon it, or because it changes all the time.
	late bool
}

type child struct {
	table, column string
	// page: rows of one parent can be many, and are read in the order of this column.
	page string
	late bool
}

// groups are all tables of the core with rows of tenants, but for those in notCopied.
var groups = []group{
	{table: "quotas"}, {table: "script_policies"}, {table: "log_usage"}, {table: "retention_rules"}, {table: "document_sets"},
	{table: "executors", key: "id"}, {table: "executor_aliases"}, {table: "handlers"}, {table: "executor_denials", key: "id"},
	{table: "deleted_documents", key: "id", children: []child{{table: "calendar_versions", column: "calendar_id"}, {table: "script_versions", column: "script_id"}}},
	{table: "invitations", key: "id"}, {table: "api_keys", key: "id"},
	{table: "join_tokens", key: "id", children: []child{{table: "join_token_boots", column: "token_id"}}},
	{table: "calendars", key: "id", children: []child{{table: "calendar_versions", column: "calendar_id"}}},
	{table: "scripts", key: "id", children: []child{{table: "script_versions", column: "script_id"}, {table: "script_revisions", column: "script_id"}}},
	{table: "job_proposals", key: "id"}, {table: "refused_declarations"},
	{table: "jobs", key: "id", index: "ix_jobs_name", children: []child{
		{table: "job_revisions", column: "job_id"}, {table: "job_events", column: "job_id"}, {table: "job_calendars", column: "job_id"}, {table: "job_scripts", column: "job_id"}, {table: "job_callbacks", column: "job_id"},
		{table: "timers", column: "job_id", page: "timer_key"},
		{table: "trigger_waits", column: "job_id", late: true}, {table: "slot_waiters", column: "job_id", late: true},
		{table: "job_slots", column: "job_id", late: true}, {table: "triggers", column: "job_id", late: true},
	}},
	{table: "request_keys"}, {table: "timer_labels"}, {table: "timer_counts"}, {table: "stored_bytes"}, {table: "statistics"}, {table: "failure_counts"}, {table: "job_weeks"}, {table: "error_texts"},
	{table: "timer_cancellations", key: "id", late: true}, {table: "backfills", key: "id", late: true}, {table: "run_purges", key: "id", late: true},
	{table: runs, key: "id", index: "ix_executions_executor", children: []child{
		{table: "attempts", column: "execution_id"}, {table: "execution_progress", column: "execution_id"}, {table: "execution_steps", column: "execution_id"}, {table: "waiting_runs", column: "execution_id"},
		{table: "log_chunks", column: "execution_id"},
	}},
	{table: "limits", key: "subject_id", index: "ix_limits_tenant", late: true, children: []child{{table: "limit_holders", column: "subject_id"}, {table: "limit_waiters", column: "subject_id"}}},
	{table: "executor_builds", late: true}, {table: "instances", key: "id", late: true}, {table: "maintenance", key: "id", late: true},
}

// allGroups are groups, and the tables of add-ons.
func allGroups(tables []db.OwnedTable) []group {
	out := slices.Clone(groups)
	for _, t := range tables {
		g := group{table: t.Name, key: t.Key, late: t.Late}
		for _, c := range t.Children {
			g.children = append(g.children, child{table: c, column: t.Column})
		}
		out = append(out, g)
	}
	return out
}

// runs is the table of which only what has ended long ago is copied early.
const runs = "executions"

// notCopied are tables with a tenant_id whose rows stay, and why.
var notCopied = map[string]string{
	"callbacks":      "a table of the version before, which nodes empty into the outbox",
	"memberships":    "they go with the accounts (people)",
	"refresh_tokens": "sessions are signed by the nodes of their cell",
	"audit_log":      "it is chained with the key of this cell, and names requests to it; it stays until retention deletes it",
	"audit_chains":   "they are the ends of audit_log",
}

// wakes is the column of what a clock wakes, and which rows that are.
type wakes struct {
	column string
	only   db.Equal
}

// parked are those of the core's tables.
var parked = map[string]wakes{
	"triggers": {column: "next_fire_at"}, runs: {column: "wake_at"}, "backfills": {column: "wake_at"}, "timer_cancellations": {column: "wake_at"}, "run_purges": {column: "wake_at"},
}

// allParked are those of all tables.
func allParked(tables []db.OwnedTable) map[string]wakes {
	out := maps.Clone(parked)
	for _, t := range tables {
		if t.Wake != "" {
			out[t.Name] = wakes{t.Wake, t.Only}
		}
	}
	return out
}

const parkBy = record.ParkedFrom

// table is a table as both databases have it.
type table struct {
	name    string
	columns []string
	text    []bool // of each column: it holds text, and not bytes
	key     []int  // the columns of the primary key, in its order
}

func (t *table) has(column string) bool { return slices.Contains(t.columns, column) }

func (t *table) at(column string) int { return slices.Index(t.columns, column) }

// readTables reads the schema, without the columns that the database fills.
func readTables(ctx context.Context, s *db.DB) (map[string]*table, error) {
	query := `SELECT m.name, p.name, lower(p.type), p.pk FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p WHERE m.type = 'table'`
	if s.Dialect.Name() != "sqlite" {
		query = `SELECT c.table_name, c.column_name, c.data_type, COALESCE(k.seq_in_index, 0) FROM information_schema.columns AS c
			LEFT JOIN information_schema.statistics AS k ON k.table_schema = DATABASE() AND k.table_name = c.table_name AND k.column_name = c.column_name AND k.index_name = 'PRIMARY'
			WHERE c.table_schema = DATABASE() AND c.extra NOT LIKE '%GENERATED%'`
	}
	type column struct {
		name, kind string
		order      int // in the primary key, from 1; 0 = it is not in it
	}
	columns := map[string][]column{}
	err := s.LookRows(ctx, "read schema", func(rows *sql.Rows) error {
		var table string
		var c column
		err := rows.Scan(&table, &c.name, &c.kind, &c.order)
		columns[table] = append(columns[table], c)
		return err
	}, query)
	out := map[string]*table{}
	for name, list := range columns {
		slices.SortFunc(list, func(a, b column) int { return cmp.Compare(a.name, b.name) }) // databases order otherwise
		t := &table{name: name}
		for order := 1; ; order++ {
			i := slices.IndexFunc(list, func(c column) bool { return c.order == order })
			if i < 0 {
				break
			}
			t.key = append(t.key, i)
		}
		for _, c := range list {
			t.columns, t.text = append(t.columns, c.name), append(t.text, strings.Contains(c.kind, "text") || strings.Contains(c.kind, "char"))
		}
		out[name] = t
	}
	return out, err
}

// row is a row as it is to be in the target: nil, int64, string or []byte per column.
type row []any

func (t *table) keyOf(r row) string {
	var b strings.Builder
	for _, i := range t.key {
		switch v := r[i].(type) {
		case []byte:
			fmt.Fprintf(&b, "%x\x00", v)
		default:
			fmt.Fprintf(&b, "%v\x00", v)
		}
	}
	return b.String()
}

func same(a, b row) bool {
	return slices.EqualFunc(a, b, func(a, b any) bool {
		x, isBytes := a.([]byte)
		y, also := b.([]byte)
		if isBytes && also {
			return bytes.Equal(x, y)
		}
		return !isBytes && !also && a == b
	})
}

// read reads rows in the order of their primary key.
func (t *table) read(ctx context.Context, q db.Querier, where string, args ...any) (out []row, err error) {
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		r, into := make(row, len(t.columns)), make([]any, len(t.columns))
		for i := range r {
			into[i] = &r[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, v := range r {
			switch v := v.(type) {
			case []byte:
				switch {
				case t.text[i]:
					r[i] = string(v)
				case v == nil: // SQLite's driver gives it for no bytes, MySQL's writes NULL for it
					r[i] = []byte{}
				}
			case string:
				if !t.text[i] {
					r[i] = []byte(v)
				}
			case nil, int64:
			default:
				return fmt.Errorf("%s.%s holds a %T", t.name, t.columns[i], v)
			}
		}
		out = append(out, r)
		return nil
	}, "SELECT "+strings.Join(t.columns, ", ")+" FROM "+t.name+" WHERE "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.name, err)
	}
	return out, nil
}

// maxStatement bounds the values of one INSERT, in bytes, and maxRows its rows.
const (
	maxStatement = 1 << 20
	maxRows      = 100
)

// insert writes rows that are not there.
func (t *table) insert(tx *db.Tx, list []row) error {
	one := "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	for len(list) > 0 {
		n, size := 0, 0
		var args []any
		for n < min(len(list), maxRows) && (n == 0 || size < maxStatement) && len(args)+len(t.columns) < 30_000 {
			for _, v := range list[n] {
				switch v := v.(type) {
				case string:
					size += len(v)
				case []byte:
					size += len(v)
				}
			}
			args = append(args, list[n]...)
			n++
		}
		if _, err := tx.Exec(tx.Ctx, "INSERT INTO "+t.name+" ("+strings.Join(t.columns, ", ")+") VALUES "+one+strings.Repeat(", "+one, n-1), args...); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// whereKey is the condition for one row.
func (t *table) whereKey(r row) (string, []any) {
	terms, args := make([]string, len(t.key)), make([]any, len(t.key))
	for n, i := range t.key {
		terms[n], args[n] = t.columns[i]+" = ?", r[i]
	}
	return strings.Join(terms, " AND "), args
}

func (t *table) update(tx *db.Tx, r row) error {
	where, key := t.whereKey(r)
	_, err := tx.Exec(tx.Ctx, "UPDATE "+t.name+" SET "+strings.Join(t.columns, " = ?, ")+" = ? WHERE "+where, append(slices.Clone(r), key...)...)
	return err
}

func (t *table) remove(tx *db.Tx, r row) error {
	where, key := t.whereKey(r)
	_, err := tx.Exec(tx.Ctx, "DELETE FROM "+t.name+" WHERE "+where, key...)
	return err
}

// after is the condition for what comes behind a row in the order of the primary key,
// whose first column is fixed.
func (t *table) after(r row) (string, []any) {
	var terms []string
	var args []any
	rest := t.key[1:]
	for n := range rest {
		var term []string
		for _, i := range rest[:n] {
			term, args = append(term, t.columns[i]+" = ?"), append(args, r[i])
		}
		term, args = append(term, t.columns[rest[n]]+" > ?"), append(args, r[rest[n]])
		terms = append(terms, "("+strings.Join(term, " AND ")+")")
	}
	first := rest[0]
	return " AND " + t.columns[first] + " >= ? AND (" + strings.Join(terms, " OR ") + ")", append([]any{r[first]}, args...)
}

// order is the primary key behind its first column.
func (t *table) order() string {
	names := make([]string, 0, len(t.key))
	for _, i := range t.key[1:] {
		names = append(names, t.columns[i])
	}
	return " ORDER BY " + cmp.Or(strings.Join(names, ", "), t.columns[t.key[0]])
}
