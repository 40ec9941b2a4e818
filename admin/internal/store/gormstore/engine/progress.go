package engine

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// owner is what decides whether somebody may speak for a run.
type owner struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	fence    int64
	state    domain.State
}

func (o owner) runs(fence int64) bool {
	return o.fence == fence && (o.state == domain.Running || o.state == domain.Cancelling)
}

// owners reads who may speak for executions; lock is a clause behind the
// statement, or empty.
func owners(t *db.Tx, ids []domain.ExecutionID, lock string) (map[domain.ExecutionID]owner, error) {
	out := make(map[domain.ExecutionID]owner, len(ids))
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		var o owner
		err := rows.Scan(&id, &o.tenant, &o.executor, &o.fence, &o.state)
		out[id] = o
		return err
	}, "SELECT id, tenant_id, executor_id, fence, state FROM executions"+t.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(ids)+") ORDER BY id"+lock)
	if err != nil {
		return nil, fmt.Errorf("read owners: %w", err)
	}
	return out, nil
}

func (s *Progress) SaveProgress(ctx context.Context, list []store.ProgressReport) error {
	if len(list) == 0 {
		return nil
	}
	ids := domain.Collect(list, func(p *store.ProgressReport) domain.ExecutionID { return p.ExecutionID })
	return s.RunRepeatable(ctx, "save progress", func(t *db.Tx) error {
		owners, err := owners(t, ids, "")
		if err != nil {
			return err
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		for _, p := range list {
			if o := owners[p.ExecutionID]; o.tenant != p.Tenant || o.executor != p.Executor {
				continue
			}
			if err := saveProgress(t, p, db.Millis(now)); err != nil {
				return err
			}
		}
		return nil
	})
}

func saveProgress(t *db.Tx, p store.ProgressReport, now int64) error {
	row := record.ProgressRow{
		ExecutionID: int64(p.ExecutionID), TenantID: int64(p.Tenant), Fence: p.Fence, Seq: p.Seq,
		Permille: int64(p.Permille), Message: record.Clip(p.Message, record.MessageSize), UpdatedAt: now,
	}
	found, err := t.Exec(t.Ctx, "UPDATE execution_progress SET fence = ?, seq = ?, permille = ?, message = ?, updated_at = ?"+
		" WHERE execution_id = ? AND tenant_id = ? AND (fence < ? OR fence = ? AND seq < ?)",
		row.Fence, row.Seq, row.Permille, row.Message, now, row.ExecutionID, row.TenantID, row.Fence, row.Fence, row.Seq)
	if err != nil || found > 0 {
		return err
	}
	return t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error // the first, or older than what is there
}

// TakeSteps decides under a shared lock on the executions, so that they neither
// end nor are offered anew before it has committed: what it stores was stored by
// the newest attempt while it ran.
func (s *Progress) TakeSteps(ctx context.Context, list []store.StepRequest) ([]store.StepAnswer, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ids := domain.Collect(list, func(r *store.StepRequest) domain.ExecutionID { return r.ID })
	return db.Value(ctx, s.RunRepeatable, "take steps", func(t *db.Tx) ([]store.StepAnswer, error) {
		owners, err := owners(t, ids, t.Dialect.ForShare())
		if err != nil {
			return nil, err
		}
		now, err := t.Clock()
		if err != nil {
			return nil, err
		}
		kept, err := keptSteps(t, ids)
		if err != nil {
			return nil, err
		}
		answers := make([]store.StepAnswer, len(list))
		for i, r := range list {
			if o := owners[r.ID]; o.tenant != r.Tenant || o.executor != r.Executor || !o.runs(r.Fence) {
				answers[i] = store.StepAnswer{Code: store.StepNotRunning}
				continue
			}
			if answers[i], err = takeStep(t, r, kept, now); err != nil {
				return nil, err
			}
		}
		return answers, nil
	})
}

// keptStep is what is known of a stored step without its result.
type keptStep struct {
	fence int64
	size  int
}

func keptSteps(t *db.Tx, ids []domain.ExecutionID) (map[domain.ExecutionID]map[string]keptStep, error) {
	out := map[domain.ExecutionID]map[string]keptStep{}
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		var name string
		var k keptStep
		if err := rows.Scan(&id, &name, &k.fence, &k.size); err != nil {
			return err
		}
		if out[id] == nil {
			out[id] = map[string]keptStep{}
		}
		out[id][name] = k
		return nil
	}, "SELECT execution_id, name, fence, LENGTH(output) FROM execution_steps WHERE execution_id IN ("+db.IDList(ids)+")")
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	return out, nil
}

func takeStep(t *db.Tx, r store.StepRequest, kept map[domain.ExecutionID]map[string]keptStep, now time.Time) (store.StepAnswer, error) {
	known, found := kept[r.ID][r.Name]
	switch {
	case found && r.Store && known.fence == r.Fence:
		return store.StepAnswer{Code: store.StepStored}, nil
	case found:
		var rows []record.StepRow
		err := t.Gorm.Where("execution_id = ? AND name = ? AND tenant_id = ?", int64(r.ID), r.Name, int64(r.Tenant)).Limit(1).Find(&rows).Error
		if err != nil || len(rows) == 0 {
			return store.StepAnswer{Code: store.StepNone}, err
		}
		return store.StepAnswer{Code: store.StepFound, Output: rows[0].Output}, nil
	case !r.Store:
		return store.StepAnswer{Code: store.StepNone}, nil
	}
	if message := tooMuch(r, kept[r.ID]); message != "" {
		return store.StepAnswer{Code: store.StepTooLarge, Message: message}, nil
	}
	row := record.StepRow{
		ExecutionID: int64(r.ID), Name: r.Name, TenantID: int64(r.Tenant), Fence: r.Fence, Output: r.Output, StoredAt: db.Millis(now),
	}
	if row.Output == nil {
		row.Output = []byte{}
	}
	// A copy of the request, through another node, may have been quicker.
	if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error; err != nil {
		return store.StepAnswer{}, fmt.Errorf("store step: %w", err)
	}
	if kept[r.ID] == nil {
		kept[r.ID] = map[string]keptStep{}
	}
	kept[r.ID][r.Name] = keptStep{r.Fence, len(r.Output)}
	return store.StepAnswer{Code: store.StepStored}, nil
}

// tooMuch says which limit of the wire a step would exceed, or "".
func tooMuch(r store.StepRequest, kept map[string]keptStep) string {
	total := len(r.Output)
	for _, k := range kept {
		total += k.size
	}
	switch {
	case r.Name == "" || len(r.Name) > domain.MaxNameLength:
		return fmt.Sprintf("a step's name has 1 to %d bytes", domain.MaxNameLength)
	case len(r.Output) > domain.MaxStep:
		return fmt.Sprintf("the result has %d bytes, the limit is %d", len(r.Output), domain.MaxStep)
	case len(kept) >= domain.MaxSteps:
		return fmt.Sprintf("the run has stored %d steps, which is the limit", len(kept))
	case total > domain.MaxStepsBytes:
		return fmt.Sprintf("the run's steps would have %d bytes together, the limit is %d", total, domain.MaxStepsBytes)
	}
	return ""
}
