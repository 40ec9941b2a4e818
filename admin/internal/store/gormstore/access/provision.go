package access

import (
	"cmp"
	"context"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Provision looks again when somebody else, another node as a rule, made the same
// meanwhile: what is unique ends the transaction of whoever comes second.
func (s *Accounts) Provision(ctx context.Context, p store.ProvisionParams) (steps []store.ProvisionStep, err error) {
	for range db.TxTries {
		if steps, err = s.provision(ctx, p); !db.IsDuplicate(err) {
			break
		}
	}
	return steps, err
}

func (s *Accounts) provision(ctx context.Context, p store.ProvisionParams) (steps []store.ProvisionStep, err error) {
	done, err := db.Value(ctx, s.RunRepeatable, "provision", func(t *db.Tx) (*provisioning, error) {
		now, err := t.Clock()
		if err != nil {
			return nil, err
		}
		w := &provisioning{DB: s.DB, t: t, now: db.Millis(now), by: p.By}
		for i := range p.Tenants {
			if err := w.tenant(&p.Tenants[i]); err != nil {
				return nil, err
			}
		}
		for i := range p.Users {
			if err := w.user(p.Users[i]); err != nil {
				return nil, err
			}
		}
		return w, nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range done.tenants {
		s.engine.ForgetCount(id)
	}
	return done.steps, nil
}

// provisioning is one try of the transaction.
type provisioning struct {
	*db.DB
	t       *db.Tx
	now     int64
	by      string
	tenants []domain.TenantID
	steps   []store.ProvisionStep
}

func (w *provisioning) step(kind, tenant, name string, made bool, left string) {
	w.steps = append(w.steps, store.ProvisionStep{Kind: kind, Tenant: tenant, Name: name, Made: made, Left: left})
}

// rowIn looks for one row.
func rowIn[R any](t *db.Tx, where string, args ...any) (row R, found bool, err error) {
	var rows []R
	err = t.Gorm.Where(where, args...).Limit(1).Find(&rows).Error
	if len(rows) > 0 {
		row, found = rows[0], true
	}
	return row, found, err
}

// make writes a row with a new id, unless it was found, and notes the step.
func (w *provisioning) make(found bool, row any, id *int64, kind, tenant, name string) (err error) {
	if !found {
		if *id, err = w.NewID(); err == nil {
			err = w.t.Gorm.Create(row).Error
		}
	}
	w.step(kind, tenant, name, !found, "")
	return err
}

func (w *provisioning) tenant(p *store.ProvisionTenant) error {
	row, found, err := rowIn[record.TenantRow](w.t, "name = ?", p.Name)
	if err != nil {
		return err
	}
	if !found {
		row = record.TenantRow{Name: p.Name, State: int64(domain.TenantEnabled), Version: 1, CreatedAt: w.now}
	}
	if err := w.make(found, &row, &row.ID, "tenant", "", p.Name); err != nil {
		return err
	}
	w.tenants = append(w.tenants, domain.TenantID(row.ID))
	for _, kind := range domain.QuotaKinds {
		limit, named := p.Quotas[kind]
		if !named {
			continue
		}
		_, set, err := rowIn[record.QuotaRow](w.t, "tenant_id = ? AND kind = ?", row.ID, string(kind))
		if err == nil && !set {
			w.step("quota", p.Name, string(kind), true, "")
			err = w.t.Gorm.Create(&record.QuotaRow{TenantID: row.ID, Kind: string(kind), Capacity: limit, ChangedAt: w.now, ChangedBy: w.by}).Error
		}
		if err != nil {
			return err
		}
	}
	for i := range p.Executors {
		if err := w.executor(row.ID, p.Name, &p.Executors[i]); err != nil {
			return err
		}
	}
	for _, k := range p.APIKeys {
		if err := w.apiKey(row.ID, p.Name, k); err != nil {
			return err
		}
	}
	return nil
}

func (w *provisioning) executor(tenant int64, tenantName string, p *store.ProvisionExecutor) error {
	row, found, err := w.executorNamed(tenant, p.Name)
	if err != nil {
		return err
	}
	if !found {
		row = record.ExecutorRow{
			TenantID: tenant, Name: p.Name, Description: record.Clip(p.Description, record.MessageSize), State: int64(domain.ExecutorEnabled), Version: 1, CreatedAt: w.now,
		}
	}
	if err := w.make(found, &row, &row.ID, "executor", tenantName, p.Name); err != nil {
		return err
	}
	for _, j := range p.JoinTokens {
		if err := w.joinToken(&row, tenantName, j); err != nil {
			return err
		}
	}
	return nil
}

// executorNamed finds one that has the name, or had it before it was renamed.
func (w *provisioning) executorNamed(tenant int64, name string) (row record.ExecutorRow, found bool, err error) {
	row, found, err = rowIn[record.ExecutorRow](w.t, "tenant_id = ? AND name = ? AND "+record.LivingExecutor, tenant, name)
	if err != nil || found {
		return row, found, err
	}
	alias, found, err := rowIn[record.AliasRow](w.t, "tenant_id = ? AND name = ?", tenant, name)
	if err != nil || !found {
		return row, false, err
	}
	return rowIn[record.ExecutorRow](w.t, "id = ? AND tenant_id = ? AND "+record.LivingExecutor, alias.ExecutorID, tenant)
}

func (w *provisioning) joinToken(executor *record.ExecutorRow, tenantName string, j domain.JoinToken) error {
	const kind = "join token"
	row, found, err := rowIn[joinTokenRow](w.t, "hash = ?", j.Hash[:])
	switch {
	case err != nil:
		return err
	case found && (row.TenantID != executor.TenantID || row.ExecutorID != executor.ID):
		w.step(kind, tenantName, j.Name, false, "its secret is that of another executor's token: make another secret")
		return nil
	case found && row.RevokedAt != 0:
		w.step(kind, tenantName, j.Name, false, "it was revoked: make another secret")
		return nil
	case !found:
		row = newJoinTokenRow(j)
		row.TenantID, row.ExecutorID, row.CreatedBy, row.CreatedAt = executor.TenantID, executor.ID, w.by, w.now
	}
	return w.make(found, &row, &row.ID, kind, tenantName, j.Name)
}

func (w *provisioning) apiKey(tenant int64, tenantName string, k domain.APIKey) error {
	const kind = "API key"
	row, found, err := rowIn[apiKeyRow](w.t, "hash = ?", k.Hash[:])
	switch {
	case err != nil:
		return err
	case found && row.TenantID != tenant:
		w.step(kind, tenantName, k.Name, false, "its secret is that of another tenant's key: make another secret")
		return nil
	case found && row.RevokedAt != 0:
		w.step(kind, tenantName, k.Name, false, "it was revoked: make another secret")
		return nil
	case found && (row.Role != string(k.Role) || !sameScope(row.key().Scope, k.Scope)):
		w.step(kind, tenantName, k.Name, false, "the key that has this secret may do something else; rights of keys do not change: make another secret")
		return nil
	case !found:
		row = newAPIKeyRow(k)
		row.TenantID, row.CreatedBy, row.CreatedAt = tenant, w.by, w.now
	}
	return w.make(found, &row, &row.ID, kind, tenantName, k.Name)
}

func sameScope(a, b domain.Scope) bool { return a.Contains(b) && b.Contains(a) }

func (w *provisioning) user(p store.ProvisionUser) error {
	row, found, err := rowIn[userRow](w.t, "username = ?", p.User.Username)
	if err != nil {
		return err
	}
	var places []membershipRow
	for name, role := range p.Roles {
		if found {
			break
		}
		tenant, there, err := rowIn[record.TenantRow](w.t, "name = ?", name)
		if err != nil {
			return err
		}
		if !there {
			w.step("user", "", p.User.Username, false, "there is no tenant "+name)
			return nil
		}
		places = append(places, membershipRow{TenantID: tenant.ID, Role: string(role)})
	}
	if !found {
		row = *toUserRow(p.User)
		row.CreatedAt = w.now
	}
	if err := w.make(found, &row, &row.ID, "user", "", p.User.Username); err != nil || len(places) == 0 {
		return err
	}
	for i := range places {
		places[i].UserID = row.ID
	}
	slices.SortFunc(places, func(a, b membershipRow) int { return cmp.Compare(a.TenantID, b.TenantID) })
	return w.t.Gorm.Create(&places).Error
}
