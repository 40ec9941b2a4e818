package console

import (
	"context"
	"strconv"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// DoubtHistory keeps the farthest history that anybody knows.
func (s *Cluster) DoubtHistory(ctx context.Context, r domain.Rollback, alert domain.AlertEvent) error {
	err := s.RunRepeatable(ctx, "doubt history", func(t *db.Tx) error {
		_, doubted, err := t.History()
		if err != nil {
			return err
		}
		if doubted.Before(r.Seen) || doubted == (domain.History{}) {
			return setClusterValue(t, db.HistoryDoubt, r.Seen.String())
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Its key names the epoch: however many nodes find out, people hear once.
	alert.DedupeKey = string(alert.Kind) + ":" + strconv.FormatInt(r.Seen.Epoch, 10)
	return s.engine.RecordAlerts(ctx, []domain.AlertEvent{alert})
}

// AcceptHistory makes an epoch that is later than any that is known of.
func (s *Cluster) AcceptHistory(ctx context.Context) (accepted domain.History, err error) {
	err = s.RunRepeatable(ctx, "accept history", func(t *db.Tx) error {
		found, doubted, err := t.History()
		if err != nil {
			return err
		}
		held, is := s.Rollbacks.RolledBack()
		if !is && doubted == (domain.History{}) {
			return domain.Errorf(domain.CodeConflict, "no node has found that the database lost anything")
		}
		found.Epoch = max(found.Epoch, doubted.Epoch, held.Seen.Epoch, s.Rollbacks.Marks().Known.Epoch) + 1
		accepted = found
		if _, err := t.Exec(t.Ctx, "DELETE FROM cluster_values WHERE name = ?", db.HistoryDoubt); err != nil {
			return err
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		if err := setClusterValue(t, domain.HistoryAcceptedValue, strconv.FormatInt(db.Millis(now), 10)); err != nil {
			return err
		}
		return setClusterValue(t, db.HistoryEpoch, strconv.FormatInt(found.Epoch, 10))
	})
	if err == nil {
		s.Rollbacks.Judge(s.Rollbacks.Marks(), accepted, domain.History{}, 0)
	}
	return accepted, err
}
