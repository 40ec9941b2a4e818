package console

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type proposalRow struct {
	ID         int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID   int64  `gorm:"column:tenant_id"`
	ExecutorID int64  `gorm:"column:executor_id"`
	Name       string `gorm:"column:name"`
	State      int64  `gorm:"column:state"`
	Hash       string `gorm:"column:hash"`
	Build      string `gorm:"column:build"`
	AppVersion string `gorm:"column:app_version"`
	Removal    string `gorm:"column:removal"`
	Spec       string `gorm:"column:spec"`
	ProposedAt int64  `gorm:"column:proposed_at"`
	DecidedAt  int64  `gorm:"column:decided_at"`
	DecidedBy  string `gorm:"column:decided_by"`
}

func (proposalRow) TableName() string { return "job_proposals" }

func (r *proposalRow) proposal() (domain.Proposal, error) {
	spec, err := record.DecodeSpec([]byte(r.Spec))
	if err != nil {
		return domain.Proposal{}, err
	}
	return domain.Proposal{
		ID: r.ID, TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), Name: r.Name,
		State: domain.ProposalState(r.State), Hash: r.Hash, Build: r.Build, Version: r.AppVersion, Removal: domain.Removal(r.Removal),
		Spec: *spec, ProposedAt: db.Instant(r.ProposedAt), DecidedAt: db.Instant(r.DecidedAt), DecidedBy: r.DecidedBy,
	}, nil
}

func (s *Catalogue) Propose(ctx context.Context, p domain.Proposal) error {
	return s.RunRepeatableAt(ctx, "propose", func(t *db.Tx, now time.Time) error { return propose(t, p, now, allow) })
}

func propose(t *db.Tx, p domain.Proposal, now time.Time, allow allowance) error {
	text, err := record.EncodeSpec(&p.Spec)
	if err != nil {
		return fmt.Errorf("encode proposal: %w", err)
	}
	var known []proposalRow
	err = t.Gorm.Clauses(t.Locking()...).Where("tenant_id = ? AND executor_id = ? AND name = ?", int64(p.TenantID), int64(p.Executor), p.Name).Find(&known).Error
	if err != nil || len(known) > 0 && known[0].Hash == p.Hash {
		return err
	}
	row := proposalRow{
		ID: p.ID, TenantID: int64(p.TenantID), ExecutorID: int64(p.Executor), Name: p.Name, State: int64(domain.ProposalPending),
		Hash: p.Hash, Build: p.Build, AppVersion: record.Clip(p.Version, record.NameSize), Removal: string(p.Removal), Spec: text, ProposedAt: db.Millis(now),
	}
	bytes := documentBytes(text)
	if len(known) > 0 {
		bytes -= documentBytes(known[0].Spec)
	}
	if err := allow(t, p.TenantID, growth{bytes: bytes}); err != nil {
		return err
	}
	if len(known) == 0 {
		err = t.Gorm.Create(&row).Error
	} else {
		row.ID = known[0].ID
		err = t.Gorm.Model(&proposalRow{}).Where("id = ? AND tenant_id = ?", row.ID, row.TenantID).Select("*").Omit("id", "tenant_id", "executor_id", "name").Updates(&row).Error
	}
	if err != nil {
		return err
	}
	return record.StoreBytes(t, p.TenantID, bytes)
}

func (s *Catalogue) ListProposals(ctx context.Context, p store.ListProposalsParams) (out store.Page[store.ProposalView], err error) {
	err = s.Look(ctx, "list proposals", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		g = g.Where("tenant_id = ? AND state = ? AND id > ?", int64(p.Tenant), int64(domain.ProposalPending), p.After)
		g = within(g, "executor_id", p.Within)
		if p.Executor != 0 {
			g = g.Where("executor_id = ?", int64(p.Executor))
		}
		rows, more, err := record.FindWithin(g.Order("id"), record.PageSize(p.Limit), func(r *proposalRow) int { return len(r.Spec) })
		if err != nil {
			return err
		}
		out.More = more
		out.Items, err = s.proposalViews(ctx, q, rows, p.Brief)
		return err
	})
	return out, err
}

func (s *Catalogue) FindProposal(ctx context.Context, tenant domain.TenantID, id int64) (view store.ProposalView, err error) {
	err = s.Look(ctx, "find proposal", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var row proposalRow
		if err := g.Where("id = ? AND tenant_id = ?", id, int64(tenant)).Take(&row).Error; err != nil {
			return err
		}
		views, err := s.proposalViews(ctx, q, []proposalRow{row}, false)
		if err == nil {
			view = views[0]
		}
		return err
	})
	return view, err
}

// proposalViews adds executors and jobs; all rows are of one tenant.
func (s *Catalogue) proposalViews(ctx context.Context, q db.Querier, rows []proposalRow, brief bool) ([]store.ProposalView, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	names, executors := make([]string, len(rows)), make([]int64, len(rows))
	specs := make([]record.CachedSpec, len(rows))
	out := make([]store.ProposalView, len(rows))
	for i := range rows {
		p, err := rows[i].proposal()
		if err != nil {
			return nil, err
		}
		out[i].Proposal = p
		names[i], executors[i] = p.Name, rows[i].ExecutorID
		specs[i] = record.CachedSpec{Tenant: p.TenantID, Spec: &out[i].Spec}
	}
	if err := record.CalendarFiller(brief)(ctx, q, specs); err != nil {
		return nil, err
	}
	byExecutor, err := executorNames(ctx, q, executors)
	if err != nil {
		return nil, err
	}
	tenant := rows[0].TenantID
	declared, err := s.livingJobs(ctx, q, "tenant_id = ? AND declared_by IN ? AND declared_name IN ?", tenant, executors, names)
	if err != nil {
		return nil, err
	}
	named, err := s.livingJobs(ctx, q, "tenant_id = ? AND name IN ?", tenant, names)
	if err != nil {
		return nil, err
	}
	for i := range out {
		p := &out[i]
		p.ExecutorName = byExecutor[executors[i]]
		of := func(v store.JobView) bool { return v.Declared.By == p.Executor && v.Declared.Name == p.Name }
		at, list := slices.IndexFunc(declared, of), declared // a person may have renamed it
		if at < 0 {
			at, list = slices.IndexFunc(named, func(v store.JobView) bool { return v.Spec.Name == p.Name }), named
		}
		if at >= 0 {
			p.Job = &list[at]
		}
	}
	return out, nil
}

func (s *Catalogue) livingJobs(ctx context.Context, q db.Querier, where string, args ...any) ([]store.JobView, error) {
	var rows []record.JobRow
	err := s.Reader.WithContext(ctx).Where("state <> ?", int64(domain.JobDeleted)).Where(where, args...).Find(&rows).Error
	if err != nil {
		return nil, err
	}
	return s.jobViews(ctx, q, rows, store.RecentRuns, s.specs.Load)
}

func (s *Catalogue) DeclineProposal(ctx context.Context, tenant domain.TenantID, id int64, hash, by string) error {
	return s.RunAt(ctx, "decline proposal", func(t *db.Tx, now time.Time) error {
		n, err := t.Exec(t.Ctx, "UPDATE job_proposals SET state = ?, decided_at = ?, decided_by = ? WHERE id = ? AND tenant_id = ? AND state = ? AND hash = ?",
			int64(domain.ProposalDeclined), db.Millis(now), record.Clip(by, record.NameSize), id, int64(tenant), int64(domain.ProposalPending), hash)
		if err == nil && n == 0 {
			err = domain.Errorf(domain.CodeConflict, "the proposal was decided or replaced meanwhile")
		}
		return err
	})
}

func (s *Catalogue) DropProposals(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return s.RunRepeatable(ctx, "drop proposals", func(t *db.Tx) error {
		if err := record.RecountTenantSoon(t, int64(tenant)); err != nil {
			return err
		}
		for some := range slices.Chunk(names, db.ListOnce) {
			err := t.Gorm.Where("tenant_id = ? AND executor_id = ? AND name IN ?", int64(tenant), int64(executor), some).Delete(&proposalRow{}).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}
