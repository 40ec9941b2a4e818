package retention

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// handlersOnce is how many handlers are looked at, and deleted, at a time.
const handlersOnce = 100

// handlerKey is the primary key of a handler.
type handlerKey struct {
	tenant, executor int64
	name             string
}

// DeleteHandlersBefore goes along the primary key: there are as many handlers as
// people have written. A registration meanwhile makes its handlers young again, or
// is of a build that was seen lately, and its handlers with it.
func (s *Retention) DeleteHandlersBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	var last handlerKey
	for deleted < int64(limit) {
		page, err := s.oldHandlers(ctx, before, last, min(handlersOnce, limit-int(deleted)))
		if err != nil || len(page) == 0 {
			return deleted, err
		}
		last = page[len(page)-1]
		if page, err = s.unlisted(ctx, page); err != nil {
			return deleted, err
		}
		n, err := s.deleteHandlers(ctx, page, before)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

func (s *Retention) oldHandlers(ctx context.Context, before time.Time, after handlerKey, limit int) (page []handlerKey, err error) {
	return db.LookSelect(ctx, s.DB, "find old handlers", func(k *handlerKey) []any { return []any{&k.tenant, &k.executor, &k.name} },
		"SELECT tenant_id, executor_id, name FROM handlers WHERE last_seen_at < ? AND tenant_id >= ? AND (tenant_id, executor_id, name) > (?, ?, ?)"+
			" ORDER BY tenant_id, executor_id, name LIMIT ?",
		db.Millis(before), after.tenant, after.tenant, after.executor, after.name, limit)
}

// unlisted leaves out the handlers that an instance of their executor lists.
func (s *Retention) unlisted(ctx context.Context, page []handlerKey) (out []handlerKey, err error) {
	type executor struct{ tenant, id int64 }
	listed := map[executor]map[string]bool{}
	for _, k := range page {
		of := executor{k.tenant, k.executor}
		names, known := listed[of]
		if !known {
			if names, err = s.listedHandlers(ctx, k.tenant, k.executor); err != nil {
				return nil, err
			}
			listed[of] = names
		}
		if !names[k.name] {
			out = append(out, k)
		}
	}
	return out, nil
}

func (s *Retention) listedHandlers(ctx context.Context, tenant, executor int64) (names map[string]bool, err error) {
	err = s.Look(ctx, "read handlers of instances", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		names = map[string]bool{}
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var text string
			if err := rows.Scan(&text); err != nil {
				return err
			}
			var list []string
			if json.Unmarshal([]byte(text), &list) != nil {
				return nil // see record.InstanceRow.Instance
			}
			for _, name := range list {
				names[name] = true
			}
			return nil
		}, "SELECT DISTINCT handlers FROM instances WHERE tenant_id = ? AND executor_id = ? AND handlers IS NOT NULL", tenant, executor)
	})
	return names, err
}

// deleteHandlers leaves those that jobs name. A job that is saved at this very
// moment names a handler that nobody knows, until an instance registers it.
func (s *Retention) deleteHandlers(ctx context.Context, page []handlerKey, before time.Time) (deleted int64, err error) {
	if len(page) == 0 {
		return 0, nil
	}
	return db.Value(ctx, s.RunRepeatable, "delete old handlers", func(t *db.Tx) (deleted int64, err error) {
		for _, k := range page {
			named := false
			err := db.Query(t.Ctx, t.Conn, func(*sql.Rows) error { named = true; return nil },
				fmt.Sprintf("SELECT 1 FROM jobs WHERE tenant_id = ? AND executor_id = ? AND handler = ? AND state <> %d LIMIT 1", domain.JobDeleted), k.tenant, k.executor, k.name)
			if err != nil {
				return 0, fmt.Errorf("find a job of the handler: %w", err)
			}
			if named {
				continue
			}
			n, err := t.Exec(t.Ctx, "DELETE FROM handlers WHERE tenant_id = ? AND executor_id = ? AND name = ? AND last_seen_at < ?", k.tenant, k.executor, k.name, db.Millis(before))
			if err != nil {
				return 0, err
			}
			deleted += n
		}
		return deleted, nil
	})
}
