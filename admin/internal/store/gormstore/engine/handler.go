package engine

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// handlersOnce and handlerBytesOnce bound one statement that writes handlers, below
// SQLite's 32,766 parameters and MariaDB's packet of 16 MiB.
const (
	handlersOnce     = 200
	handlerBytesOnce = 1 << 20
)

// DefineHandlers sets definitions. CodeQuotaExceeded: there is no room for them.
func DefineHandlers(t *db.Tx, tenant, executor int64, handlers []domain.Handler, now time.Time) error {
	return takeHandlers(t, buildKey{tenant: tenant, executor: executor}, handlers, now, nil)
}

// takeHandlers defines handlers, and removes those that leave for them.
func takeHandlers(t *db.Tx, k buildKey, handlers []domain.Handler, now time.Time, coming []string) error {
	leaving, err := roomForHandlers(t, k, handlers, now, coming, true)
	if err != nil {
		return err
	}
	if err := removeHandlers(t, k, leaving, now); err != nil {
		return err
	}
	return mergeHandlers(t, k, handlers, now, true)
}

// mergeHandlers goes in name order, so that instances that start together do
// not wait for each other in a circle. Definitions that are there stay unless
// they are to be set.
func mergeHandlers(t *db.Tx, k buildKey, handlers []domain.Handler, now time.Time, define bool) error {
	rows := make([]record.HandlerRow, len(handlers))
	for n, h := range handlers {
		rows[n] = record.HandlerRow{
			TenantID: k.tenant, ExecutorID: k.executor, Name: h.Name, Description: record.Clip(h.Description, record.MessageSize),
			InputSchema: h.InputSchema, OutputSchema: h.OutputSchema, Idempotent: h.Idempotent,
			FirstSeenAt: db.Millis(now), LastSeenAt: db.Millis(now),
		}
		if h.Calls == nil {
			continue
		}
		text, err := record.EncodeSpec(h.Calls)
		if err != nil {
			return fmt.Errorf("encode calls of handler %q: %w", h.Name, err)
		}
		rows[n].Calls = &text
	}
	slices.SortFunc(rows, func(a, b record.HandlerRow) int { return strings.Compare(a.Name, b.Name) })
	rows = slices.CompactFunc(rows, func(a, b record.HandlerRow) bool { return a.Name == b.Name })
	update := []string{"last_seen_at"}
	if define {
		update = append(update, "description", "input_schema", "output_schema", "idempotent", "calls")
	}
	for len(rows) > 0 {
		n, size := 1, rows[0].Size()
		for n < min(len(rows), handlersOnce) && size+rows[n].Size() <= handlerBytesOnce {
			size += rows[n].Size()
			n++
		}
		some := rows[:n]
		rows = rows[n:]
		err := t.Gorm.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "tenant_id"}, {Name: "executor_id"}, {Name: "name"}},
			DoUpdates: clause.AssignmentColumns(update),
		}).Create(&some).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// knownHandler is what the bound of handlers asks about one.
type knownHandler struct {
	name     string
	bytes    int64
	lastSeen int64
}

// roomForHandlers returns the handlers that leave, so that others fit into
// store.MaxHandlers and store.MaxHandlerBytes. Handlers that are not in use leave, the one
// that was seen longest ago first. It writes nothing. coming are the builds of the
// same transaction. define says that the definitions replace the stored ones.
// CodeQuotaExceeded: the handlers in use leave no room for more. A registration that adds
// nothing is never refused. Nodes that register at the same time may together go over the bound; the
// next registration brings it down.
func roomForHandlers(t *db.Tx, k buildKey, handlers []domain.Handler, now time.Time, coming []string, define bool) (leaving []string, err error) {
	fresh, bytes := make(map[string]int64, len(handlers)), int64(0)
	for _, h := range handlers {
		fresh[h.Name] = int64(len(record.Clip(h.Description, record.MessageSize)) + len(h.InputSchema) + len(h.OutputSchema))
		bytes += fresh[h.Name]
	}
	var names, held int64
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error { return rows.Scan(&names, &held) },
		"SELECT COUNT(*), COALESCE(SUM("+record.HandlerBytes+"), 0) FROM handlers WHERE tenant_id = ? AND executor_id = ?", k.tenant, k.executor)
	if err != nil {
		return nil, fmt.Errorf("count handlers: %w", err)
	}
	if names+int64(len(fresh)) <= store.MaxHandlers && held+bytes <= store.MaxHandlerBytes {
		return nil, nil
	}
	known, err := db.Select(t.Ctx, t.Conn, func(h *knownHandler) []any { return []any{&h.name, &h.bytes, &h.lastSeen} },
		"SELECT name, "+record.HandlerBytes+", last_seen_at FROM handlers WHERE tenant_id = ? AND executor_id = ? ORDER BY last_seen_at, name", k.tenant, k.executor)
	if err != nil {
		return nil, fmt.Errorf("list handlers: %w", err)
	}
	names, held = int64(len(known)), 0
	moreNames, moreBytes := int64(len(fresh)), bytes
	for _, h := range known {
		held += h.bytes
		if size, comes := fresh[h.name]; comes {
			moreNames--
			moreBytes -= h.bytes
			if !define && size < h.bytes { // a definition stays that is there
				moreBytes += h.bytes - size
			}
		}
	}
	names, held = names+moreNames, held+moreBytes
	if names <= store.MaxHandlers && held <= store.MaxHandlerBytes {
		return nil, nil
	}
	used, err := usedHandlers(t, k, now, coming)
	if err != nil {
		return nil, err
	}
	for _, h := range known {
		if names <= store.MaxHandlers && held <= store.MaxHandlerBytes {
			break
		}
		if _, comes := fresh[h.name]; comes || used[h.name] {
			continue
		}
		leaving = append(leaving, h.name)
		names, held = names-1, held-h.bytes
	}
	if names > store.MaxHandlers && moreNames > 0 || held > store.MaxHandlerBytes && moreBytes > 0 {
		return nil, domain.Errorf(domain.CodeQuotaExceeded,
			"an executor has at most %d handlers, and %d bytes of their descriptions and schemas; with this registration it would have %d handlers and %d bytes that instances, enabled jobs and pending timers use: register fewer handlers or smaller schemas, or stop instances of other builds",
			store.MaxHandlers, store.MaxHandlerBytes, names, held)
	}
	return leaving, nil
}

// usedHandlers are those of present instances, of enabled jobs and of pending timers. Jobs
// that hold only the calls and callbacks of a handler use none.
func usedHandlers(t *db.Tx, k buildKey, now time.Time, coming []string) (map[string]bool, error) {
	const present = " FROM instances WHERE tenant_id = ? AND executor_id = ? AND (gone_at = 0 OR gone_at > ?)"
	since := db.Millis(now.Add(-domain.BuildGrace))
	builds, err := db.SelectColumn[string](t.Ctx, t.Conn, "SELECT DISTINCT build"+present, k.tenant, k.executor, since)
	if err != nil {
		return nil, fmt.Errorf("find builds of instances: %w", err)
	}
	// Instances of old versions name no build.
	lists, err := db.SelectColumn[string](t.Ctx, t.Conn, "SELECT DISTINCT handlers"+present+" AND build = '' AND handlers IS NOT NULL", k.tenant, k.executor, since)
	if err != nil {
		return nil, fmt.Errorf("read handlers of instances: %w", err)
	}
	used := map[string]bool{}
	note := func(list string) {
		var names []string
		if json.Unmarshal([]byte(list), &names) != nil {
			return // see record.InstanceRow.Instance
		}
		for _, name := range names {
			used[name] = true
		}
	}
	for _, list := range lists {
		note(list)
	}
	for some := range slices.Chunk(append(builds, coming...), db.ListOnce) {
		args := []any{k.tenant, k.executor}
		for _, digest := range some {
			args = append(args, digest)
		}
		err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
			var list string
			err := rows.Scan(&list)
			note(list)
			return err
		}, "SELECT handlers FROM executor_builds WHERE tenant_id = ? AND executor_id = ? AND digest IN ("+db.Placeholders(len(some))+")", args...)
		if err != nil {
			return nil, fmt.Errorf("read handlers of builds: %w", err)
		}
	}
	jobs, err := db.SelectColumn[string](t.Ctx, t.Conn,
		"SELECT DISTINCT j.handler FROM jobs AS j WHERE j.tenant_id = ? AND j.executor_id = ? AND j.state = ? AND (j.kind = ?"+
			" OR j.kind = ? AND (SELECT COALESCE(SUM(c.pending), 0) FROM timer_counts AS c WHERE c.tenant_id = j.tenant_id AND c.job_id = j.id) > 0)",
		k.tenant, k.executor, int64(domain.JobEnabled), int64(domain.JobPlain), int64(domain.JobTimer))
	if err != nil {
		return nil, fmt.Errorf("find handlers of jobs: %w", err)
	}
	for _, name := range jobs {
		used[name] = true
	}
	return used, nil
}

// removeHandlers also makes the builds of the executor old enough that their next
// registration writes their handlers again.
func removeHandlers(t *db.Tx, k buildKey, names []string, now time.Time) error {
	if len(names) == 0 {
		return nil
	}
	slices.SortFunc(names, cmp.Compare[string])
	for some := range slices.Chunk(names, db.ListOnce) {
		args := []any{k.tenant, k.executor}
		for _, name := range some {
			args = append(args, name)
		}
		if _, err := t.Exec(t.Ctx, "DELETE FROM handlers WHERE tenant_id = ? AND executor_id = ? AND name IN ("+db.Placeholders(len(some))+")", args...); err != nil {
			return fmt.Errorf("remove unused handlers: %w", err)
		}
	}
	old := db.Millis(now.Add(-store.BuildLastSeen))
	_, err := t.Exec(t.Ctx, "UPDATE executor_builds SET last_seen_at = ? WHERE tenant_id = ? AND executor_id = ? AND last_seen_at > ?", old, k.tenant, k.executor, old)
	return err
}
