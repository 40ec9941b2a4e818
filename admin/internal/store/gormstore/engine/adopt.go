package engine

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// adoptOnce bounds the rows of a table that one transaction moves.
const adoptOnce = 500

// AdoptOutbox moves into the outbox what nodes of the version before leave in its tables
// while both versions work. It goes with these tables.
func (s *core) AdoptOutbox(ctx context.Context) error {
	left := false
	err := s.LookRows(ctx, "look for rows of the version before", func(rows *sql.Rows) error { return rows.Scan(&left) },
		"SELECT EXISTS (SELECT 1 FROM statistics_journal) OR EXISTS (SELECT 1 FROM callbacks)")
	if err != nil || !left {
		return err
	}
	return s.RunRepeatable(ctx, "adopt rows of the version before", func(t *db.Tx) error {
		if err := adoptEnds(t); err != nil {
			return fmt.Errorf("adopt ends: %w", err)
		}
		if err := adoptCallbacks(t); err != nil {
			return fmt.Errorf("adopt callbacks: %w", err)
		}
		return nil
	})
}

func adoptEnds(t *db.Tx) error {
	var ids []int64
	var bodies [][]byte
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var id int64
		var body []byte
		err := rows.Scan(&id, &body)
		ids, bodies = append(ids, id), append(bodies, body)
		return err
	}, fmt.Sprintf("SELECT id, body FROM statistics_journal ORDER BY id LIMIT %d", adoptOnce)+t.Dialect.ForUpdateSkip())
	if err != nil || len(ids) == 0 {
		return err
	}
	if err := t.Append(domain.TopicEnds, bodies...); err != nil {
		return err
	}
	_, err = t.Exec(t.Ctx, "DELETE FROM statistics_journal WHERE id IN ("+db.IDList(ids)+")")
	return err
}

func adoptCallbacks(t *db.Tx) error {
	var list []domain.Callback
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var c domain.Callback
		err := rows.Scan(&c.Tenant, &c.ID, &c.Success)
		list = append(list, c)
		return err
	}, fmt.Sprintf("SELECT tenant_id, execution_id, success FROM callbacks ORDER BY execution_id, success LIMIT %d", adoptOnce)+t.Dialect.ForUpdateSkip())
	if err != nil || len(list) == 0 {
		return err
	}
	for part := range slices.Chunk(list, listInRow) {
		if err := appendList(t, domain.TopicCallbacks, part); err != nil {
			return err
		}
		for _, c := range part {
			if _, err := t.Exec(t.Ctx, "DELETE FROM callbacks WHERE execution_id = ? AND success = ?", int64(c.ID), db.Flag(c.Success)); err != nil {
				return err
			}
		}
	}
	return nil
}
