package console

import (
	"context"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type scriptPolicyRow struct {
	TenantID  int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	Revision  int64  `gorm:"column:revision;primaryKey;autoIncrement:false"`
	Languages string `gorm:"column:languages"`
	HTTP      bool   `gorm:"column:http"`
	// CallbackHosts are separated by commas; none: callbacks are off.
	CallbackHosts     string `gorm:"column:callback_hosts"`
	CallbackTimeoutMS int64  `gorm:"column:callback_timeout_ms"`
	CallbacksPerHost  int    `gorm:"column:callbacks_per_host"`
	CallbackSecret    []byte `gorm:"column:callback_secret"`
	Note              string `gorm:"column:note"`
	CreatedAt         int64  `gorm:"column:created_at;autoCreateTime:false"`
	CreatedBy         string `gorm:"column:created_by"`
}

func (scriptPolicyRow) TableName() string { return "script_policies" }

func (r *scriptPolicyRow) policy() domain.ScriptPolicy {
	p := domain.ScriptPolicy{
		TenantID: domain.TenantID(r.TenantID), Revision: r.Revision, HTTP: r.HTTP, Note: r.Note,
		CreatedAt: db.Instant(r.CreatedAt), CreatedBy: r.CreatedBy,
	}
	if r.Languages != "" {
		p.Languages = strings.Split(r.Languages, ",")
	}
	p.Callbacks = r.callbacks()
	return p
}

func (r *scriptPolicyRow) callbacks() *domain.CallbackPolicy {
	if r.CallbackHosts == "" {
		return nil
	}
	return &domain.CallbackPolicy{
		Hosts: strings.Split(r.CallbackHosts, ","), MaxTimeout: time.Duration(r.CallbackTimeoutMS) * time.Millisecond, PerHost: r.CallbacksPerHost, Secret: r.CallbackSecret,
	}
}

// allowCallbacks puts what may be called into the row; without a secret it keeps
// the one that is there.
func (r *scriptPolicyRow) allowCallbacks(p *domain.CallbackPolicy) {
	r.CallbackHosts, r.CallbackTimeoutMS, r.CallbacksPerHost = strings.Join(p.Hosts, ","), p.MaxTimeout.Milliseconds(), p.PerHost
	if p.Secret != nil {
		r.CallbackSecret = p.Secret
	}
}

func newestPolicies(g *gorm.DB, tenant domain.TenantID, limit int) (rows []scriptPolicyRow, err error) {
	err = g.Where("tenant_id = ?", int64(tenant)).Order("revision DESC").Limit(limit).Find(&rows).Error
	return rows, err
}

func (s *Scripts) FindScriptPolicy(ctx context.Context, tenant domain.TenantID) (domain.ScriptPolicy, error) {
	list, err := s.ListScriptPolicies(ctx, tenant, 1)
	if err != nil {
		return domain.ScriptPolicy{}, err
	}
	if len(list) == 0 {
		return domain.ScriptPolicy{TenantID: tenant}, nil
	}
	return list[0], nil
}

func (s *Scripts) ListScriptPolicies(ctx context.Context, tenant domain.TenantID, limit int) (out []domain.ScriptPolicy, err error) {
	err = s.Look(ctx, "list script policies", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		rows, err := newestPolicies(g, tenant, record.PageSize(limit))
		out = domain.Collect(rows, (*scriptPolicyRow).policy)
		return err
	})
	return out, err
}

func (s *Scripts) SetScriptPolicy(ctx context.Context, p domain.ScriptPolicy) (domain.ScriptPolicy, error) {
	return db.Value(ctx, s.Run, "set script policy", func(t *db.Tx) (none domain.ScriptPolicy, err error) {
		now, err := t.Clock()
		if err != nil {
			return none, err
		}
		rows, err := newestPolicies(t.Gorm, p.TenantID, 1)
		if err != nil {
			return none, err
		}
		row := scriptPolicyRow{
			TenantID: int64(p.TenantID), Revision: 1, Languages: strings.Join(p.Languages, ","), HTTP: p.HTTP,
			Note: p.Note, CreatedAt: db.Millis(now), CreatedBy: p.CreatedBy,
		}
		if len(rows) > 0 {
			last := rows[0]
			row.Revision = last.Revision + 1
			row.CallbackHosts, row.CallbackTimeoutMS, row.CallbacksPerHost, row.CallbackSecret = last.CallbackHosts, last.CallbackTimeoutMS, last.CallbacksPerHost, last.CallbackSecret
		}
		if p.Callbacks != nil {
			row.allowCallbacks(p.Callbacks)
		}
		if err := t.Gorm.Create(&row).Error; db.IsDuplicate(err) {
			return none, domain.Errorf(domain.CodeConflict, "somebody else changed the policy at the same moment; look at it again")
		} else if err != nil {
			return none, err
		}
		if _, err := policyHistory.cut(t, row.TenantID, row.Revision, nothingUsed); err != nil {
			return none, err
		}
		set := row.policy()
		var before db.Facts
		if len(rows) > 0 {
			last := rows[0].policy()
			before = policyFacts(&last)
		}
		t.AuditedChange(domain.AuditObject{}, before, policyFacts(&set))
		if set.Callbacks == nil {
			return set, nil
		}
		return set, s.ensureBuiltIn(t, p.TenantID, row.CreatedAt)
	})
}

func policyFacts(p *domain.ScriptPolicy) db.Facts {
	f := db.Facts{"revision": p.Revision, "languages": p.Languages, "http": p.HTTP, "note": p.Note}
	if c := p.Callbacks; c != nil {
		f["callbacks"] = db.Facts{"hosts": c.Hosts, "maxTimeout": c.MaxTimeout.String(), "perHost": c.PerHost}
	}
	return f
}

func (s *Scripts) FindCallbackSecret(ctx context.Context, tenant domain.TenantID) (secret []byte, err error) {
	err = s.Look(ctx, "find callback secret", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		rows, err := newestPolicies(g, tenant, 1)
		if err != nil {
			return err
		}
		if len(rows) == 0 || rows[0].CallbackSecret == nil {
			return domain.Errorf(domain.CodeNotFound, "callbacks were never allowed for this tenant: there is no secret that signs them")
		}
		secret = rows[0].CallbackSecret
		return nil
	})
	return secret, err
}

func (s *Scripts) ListBuiltIn(ctx context.Context) (out []store.BuiltIn, err error) {
	err = s.Look(ctx, "list built-in executors", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var rows []struct {
			Policy     scriptPolicyRow `gorm:"embedded"`
			ExecutorID int64           `gorm:"column:executor_id"`
			Owner      int64           `gorm:"column:owner"`
		}
		err := g.Raw("SELECT e.id AS executor_id, e.tenant_id AS owner, p.* FROM executors e LEFT JOIN script_policies p ON p.tenant_id = e.tenant_id" +
			" AND p.revision = (SELECT MAX(q.revision) FROM script_policies q WHERE q.tenant_id = e.tenant_id) WHERE e.built_in = 1 AND EXISTS (SELECT 1 FROM tenants n WHERE n.id = e.tenant_id AND n.state = 1) ORDER BY e.id").Scan(&rows).Error
		out = make([]store.BuiltIn, len(rows))
		for i, r := range rows {
			out[i] = store.BuiltIn{Tenant: domain.TenantID(r.Owner), Executor: domain.ExecutorID(r.ExecutorID), Callbacks: r.Policy.callbacks()}
		}
		return err
	})
	return out, err
}
