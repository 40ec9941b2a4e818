package console

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Feed is store.Feed.
type Feed struct{ *shared }

func (s *Feed) TakeEvents(ctx context.Context, limit int) ([]domain.AlertEvent, error) {
	return db.Value(ctx, s.RunRepeatable, "take events", func(t *db.Tx) ([]domain.AlertEvent, error) {
		now, err := t.Clock()
		if err != nil {
			return nil, err
		}
		_, rows, err := engine.TakeEvents(t, now, limit)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		list := db.IDList(db.IDs(rows, func(r record.AlertEventRow) int64 { return r.ID }))
		if _, err := t.Exec(t.Ctx, "UPDATE alert_events SET expanded_at = ? WHERE id IN ("+list+")", db.Millis(now)); err != nil {
			return nil, err
		}
		return domain.Collect(rows, func(r *record.AlertEventRow) domain.AlertEvent { return r.Event() }), nil
	})
}
