package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
)

// event is what alerting has taken from the outbox, or what is there for it still.
type event struct {
	Kind, Key, Run string
}

// readEvents reads both places, each event once.
func readEvents(ctx context.Context, db *sql.DB) ([]event, error) {
	var out []event
	known := map[string]bool{}
	add := func(e event) {
		if e.Key == "" || !known[e.Key] {
			known[e.Key] = true
			out = append(out, e)
		}
	}
	rows, err := db.QueryContext(ctx, "SELECT kind, dedupe_key, execution_id, '' FROM alert_events UNION ALL SELECT '', '', 0, body FROM outbox WHERE topic = 4")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var e event
		var body []byte
		if err := rows.Scan(&e.Kind, &e.Key, &e.Run, &body); err != nil {
			return nil, err
		}
		if len(body) == 0 {
			add(e)
			continue
		}
		var list []struct {
			Kind, Key string
			Run       int64
		}
		if err := json.Unmarshal(body, &list); err != nil {
			return nil, fmt.Errorf("a row of the outbox: %w", err)
		}
		for _, o := range list {
			add(event{o.Kind, o.Key, strconv.FormatInt(o.Run, 10)})
		}
	}
	return out, rows.Err()
}
