package engine

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// nodesReturned is the cluster value that ends an absence of all nodes, in milliseconds.
const nodesReturned = "nodes_returned"

// signsOfLife reads those of the nodes, and the clock. A node that has left has the instant
// of that, negative.
func signsOfLife(t *db.Tx) (signs domain.SignsOfLife, now time.Time, err error) {
	var at, seen, returned int64
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error { return rows.Scan(&at, &seen, &returned) },
		"SELECT "+t.Dialect.Clock()+", COALESCE((SELECT MAX(ABS(renewed_at)) FROM node_states), 0),"+
			" COALESCE((SELECT CAST(value AS SIGNED) FROM cluster_values WHERE name = '"+nodesReturned+"'), 0)")
	if err != nil {
		return signs, now, fmt.Errorf("read signs of life: %w", err)
	}
	return domain.SignsOfLife{Seen: db.Instant(seen), Returned: db.Instant(returned)}, db.Instant(at), nil
}

// noteReturn comes before the sign of life of a node in its transaction. The first node
// that comes back ends the absence for all.
func noteReturn(t *db.Tx) error {
	signs, now, err := signsOfLife(t)
	if err != nil || !signs.Absent(now) {
		return err
	}
	_, err = t.Exec(t.Ctx, "INSERT INTO cluster_values (name, value) VALUES (?, ?)"+t.Dialect.OnDuplicate("name")+" value = "+t.Dialect.Inserted("value"),
		nodesReturned, fmt.Sprint(db.Millis(now)))
	return err
}
