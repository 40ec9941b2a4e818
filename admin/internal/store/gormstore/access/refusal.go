package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type refusalRow struct {
	Subject  []byte `gorm:"column:subject;primaryKey"`
	Code     string `gorm:"column:code"`
	Message  string `gorm:"column:message"`
	Remote   string `gorm:"column:remote"`
	Executor string `gorm:"column:executor"`
	Instance string `gorm:"column:instance"`
	Node     string `gorm:"column:node"`
	Times    int64  `gorm:"column:times"`
	FirstAt  int64  `gorm:"column:first_at"`
	LastAt   int64  `gorm:"column:last_at"`
}

func (refusalRow) TableName() string { return "refusals" }

func toRefusalRow(r domain.Refusal) refusalRow {
	row := refusalRow{
		Code: record.Clip(r.Code, 64), Message: record.Clip(r.Message, 512), Remote: record.Clip(r.Remote, 64), Executor: record.Clip(r.Executor, record.NameSize),
		Instance: record.Clip(r.Instance, record.NameSize), Node: record.Clip(r.Node, record.NameSize), Times: int64(r.Times), FirstAt: db.Millis(r.FirstAt), LastAt: db.Millis(r.LastAt),
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", row.Code, row.Remote, row.Executor, row.Instance))
	row.Subject = digest[:16]
	return row
}

func (r refusalRow) refusal() domain.Refusal {
	return domain.Refusal{
		Code: r.Code, Message: r.Message, Remote: r.Remote, Executor: r.Executor, Instance: r.Instance, Node: r.Node,
		Times: int(r.Times), FirstAt: db.Instant(r.FirstAt), LastAt: db.Instant(r.LastAt),
	}
}

// NoteRefusals goes in the order of the subjects, so that nodes do not wait for
// each other in a circle.
func (s *Refusals) NoteRefusals(ctx context.Context, list []domain.Refusal, keep int) error {
	if len(list) == 0 {
		return nil
	}
	rows := make([]refusalRow, len(list))
	for i, r := range list {
		rows[i] = toRefusalRow(r)
	}
	slices.SortStableFunc(rows, func(a, b refusalRow) int { return bytes.Compare(a.Subject, b.Subject) })
	count, err := db.Value(ctx, s.Run, "note refusals", func(t *db.Tx) (count int, err error) {
		fresh := slices.Clone(rows)
		for i := range fresh {
			fresh[i].Times = 0
		}
		if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&fresh).Error; err != nil {
			return 0, err
		}
		for _, r := range rows {
			_, err := t.Exec(t.Ctx, "UPDATE refusals SET times = times + ?, message = ?, node = ?,"+
				" last_at = CASE WHEN last_at < ? THEN ? ELSE last_at END WHERE subject = ?", r.Times, r.Message, r.Node, r.LastAt, r.LastAt, r.Subject)
			if err != nil {
				return 0, err
			}
		}
		err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error { return rows.Scan(&count) }, "SELECT COUNT(*) FROM refusals")
		return count, err
	})
	if err != nil || count <= keep {
		return err
	}
	// Not together with the rows above, which are locked in another order.
	return s.Run(ctx, "forget refusals", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded("refusals", "last_at > 0 ORDER BY last_at"), count-keep)
		return err
	})
}

func (s *Refusals) ListRefusals(ctx context.Context, limit int) ([]domain.Refusal, error) {
	var rows []refusalRow
	rows, err := db.FindBy[refusalRow](ctx, s.DB, "list refusals", func(g *gorm.DB) *gorm.DB { return g.Order("last_at DESC").Limit(limit) })
	return domain.Collect(rows, (*refusalRow).refusal), err
}

func (s *Refusals) DeleteRefusalsBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	return db.Value(ctx, s.RunRepeatable, "delete old refusals", func(t *db.Tx) (int64, error) {
		return t.Exec(t.Ctx, t.Dialect.DeleteBounded("refusals", "last_at < ?"), db.Millis(before), int64(limit))
	})
}
