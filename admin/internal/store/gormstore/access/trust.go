package access

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type authorityRow struct {
	ID          int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	Epoch       int64  `gorm:"column:epoch"`
	Certificate []byte `gorm:"column:certificate"`
	SealedKey   []byte `gorm:"column:sealed_key"`
	CreatedAt   int64  `gorm:"column:created_at;autoCreateTime:false"`
	ExpiresAt   int64  `gorm:"column:expires_at"`
}

func (authorityRow) TableName() string { return "executor_authorities" }

type denialRow struct {
	ID         int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID   int64  `gorm:"column:tenant_id"`
	ExecutorID int64  `gorm:"column:executor_id"`
	Kind       string `gorm:"column:kind"`
	Subject    string `gorm:"column:subject"`
	Label      string `gorm:"column:label"`
	Reason     string `gorm:"column:reason"`
	CreatedBy  string `gorm:"column:created_by"`
	CreatedAt  int64  `gorm:"column:created_at;autoCreateTime:false"`
}

func (denialRow) TableName() string { return "executor_denials" }

func (r denialRow) denial() domain.Denial {
	return domain.Denial{
		ID: r.ID, TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), Kind: domain.DenialKind(r.Kind),
		Subject: r.Subject, Label: r.Label, Reason: r.Reason, CreatedBy: r.CreatedBy, CreatedAt: db.Instant(r.CreatedAt),
	}
}

func (s *Trust) CreateAuthority(ctx context.Context, a domain.Authority) error {
	return s.Run(ctx, "create authority", func(t *db.Tx) error {
		err := t.Gorm.Create(&authorityRow{
			ID: a.ID, Epoch: int64(a.Epoch), Certificate: a.Certificate, SealedKey: a.SealedKey,
			CreatedAt: db.Millis(a.CreatedAt), ExpiresAt: db.Millis(a.ExpiresAt),
		}).Error
		return db.NameTaken(err, "certificate authority", number(a.Epoch).String())
	})
}

func (s *Trust) ListAuthorities(ctx context.Context) (out []domain.Authority, err error) {
	rows, err := db.FindAll[authorityRow](ctx, s.DB, "list authorities", "epoch DESC", "expires_at > "+s.Dialect.ClockNow())
	for _, r := range rows {
		out = append(out, domain.Authority{
			ID: r.ID, Epoch: int(r.Epoch), Certificate: r.Certificate, SealedKey: r.SealedKey,
			CreatedAt: db.Instant(r.CreatedAt), ExpiresAt: db.Instant(r.ExpiresAt),
		})
	}
	return out, err
}

func (s *Trust) CreateDenial(ctx context.Context, d domain.Denial) (domain.Denial, error) {
	made := denialRow{
		ID: d.ID, TenantID: int64(d.TenantID), ExecutorID: int64(d.Executor), Kind: string(d.Kind), Subject: d.Subject,
		Label: record.Clip(d.Label, record.NameSize), Reason: record.Clip(d.Reason, record.MessageSize), CreatedBy: record.Clip(d.CreatedBy, record.NameSize),
	}
	row, err := db.Value(ctx, s.RunRepeatable, "create denial", func(t *db.Tx) (denialRow, error) {
		row := made
		if _, err := record.ExecutorName(t, d.TenantID, d.Executor); err != nil {
			return row, err
		}
		if err := allowDenial(t, &d); err != nil {
			return row, err
		}
		now, err := t.Clock()
		if err != nil {
			return row, err
		}
		row.CreatedAt = db.Millis(now)
		if d.Kind == domain.DenyInstance {
			if err := markDenied(t, d.TenantID, d.Executor, "boot_id = ?", d.Subject); err != nil {
				return row, err
			}
		}
		auditDenial(t, nil, &row)
		return row, db.NameTaken(t.Gorm.Create(&row).Error, "denial", d.Subject)
	})
	if domain.Is(err, domain.CodeConflict) {
		domain.AuditOf(ctx).Drop() // it was denied before
		old, err := db.FindOne[denialRow](ctx, s.DB, "find denial", "tenant_id = ? AND executor_id = ? AND subject = ?", int64(d.TenantID), int64(d.Executor), d.Subject)
		return old.denial(), err
	}
	if err != nil {
		return domain.Denial{}, err
	}
	return row.denial(), nil
}

// auditDenial tells the audit log of a denial that begins or ends.
func auditDenial(t *db.Tx, before, after *denialRow) {
	db.AuditedRow(t, before, after, func(r *denialRow) domain.AuditObject {
		return domain.AuditObject{ID: number(r.ID).String(), Name: r.Kind + " " + r.Subject}
	}, func(r *denialRow) db.Facts {
		return db.Facts{"executor": domain.ExecutorID(r.ExecutorID), "kind": r.Kind, "subject": r.Subject, "label": r.Label, "reason": r.Reason}
	})
}

func (s *Trust) MarkDenied(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, instances []domain.InstanceID) error {
	if len(instances) == 0 {
		return nil
	}
	return s.RunRepeatable(ctx, "mark denied instances", func(t *db.Tx) error {
		return markDenied(t, tenant, executor, "id IN ("+db.IDList(instances)+")")
	})
}

// markDenied takes instances off the list and leaves their leases.
func markDenied(t *db.Tx, tenant domain.TenantID, executor domain.ExecutorID, which string, args ...any) error {
	_, err := t.Exec(t.Ctx, "UPDATE instances SET gone_at = "+t.Dialect.Clock()+", gone_reason = ? WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND "+which,
		append([]any{"denied by an administrator", int64(tenant), int64(executor)}, args...)...)
	return err
}

func (s *Trust) ListDenials(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (out []domain.Denial, err error) {
	rows, err := db.FindPage[denialRow](ctx, s.DB, "list denials", "id DESC", record.PageSize(record.MaxPage),
		"tenant_id = ? AND executor_id = ?", int64(tenant), int64(executor))
	return domain.Collect(rows, (*denialRow).denial), err
}

func (s *Trust) DeleteDenial(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, id int64) error {
	return s.RunRepeatable(ctx, "delete denial", func(t *db.Tx) error {
		var was []denialRow
		if err := t.Gorm.Where("id = ? AND tenant_id = ? AND executor_id = ?", id, int64(tenant), int64(executor)).Find(&was).Error; err != nil {
			return err
		}
		for i := range was {
			auditDenial(t, &was[i], nil)
		}
		return t.MustFind("denial", number(id), "DELETE FROM executor_denials WHERE id = ? AND tenant_id = ? AND executor_id = ?", id, int64(tenant), int64(executor))
	})
}

func (s *Trust) FindDenials(ctx context.Context, list []store.DenialQuery) ([]*domain.Denial, error) {
	type of struct {
		tenant   domain.TenantID
		executor domain.ExecutorID
	}
	subjects := map[of][]any{}
	for _, q := range list {
		for _, subject := range q.Subjects {
			subjects[of{q.Tenant, q.Executor}] = append(subjects[of{q.Tenant, q.Executor}], subject)
		}
	}
	found := map[of]map[string]*domain.Denial{}
	for k, names := range subjects {
		rows, err := db.FindAll[denialRow](ctx, s.DB, "find denials", "id", "tenant_id = ? AND executor_id = ? AND subject IN ?", int64(k.tenant), int64(k.executor), names)
		if err != nil {
			return nil, err
		}
		found[k] = map[string]*domain.Denial{}
		for _, r := range rows {
			d := r.denial()
			found[k][d.Subject] = &d
		}
	}
	out := make([]*domain.Denial, len(list))
	for i, q := range list {
		for _, subject := range q.Subjects {
			if d := found[of{q.Tenant, q.Executor}][subject]; d != nil {
				out[i] = d
			}
		}
	}
	return out, nil
}

func (s *Trust) ListDenialsSince(ctx context.Context, since time.Time) (now time.Time, out []domain.Denial, err error) {
	if now, err = s.Now(ctx); err != nil {
		return now, nil, err
	}
	rows, err := db.FindAll[denialRow](ctx, s.DB, "list new denials", "created_at", "created_at >= ?", db.Millis(since))
	return now, domain.Collect(rows, (*denialRow).denial), err
}
