package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// tenantDocumentKind is the kind of documents that are tenants.
var tenantDocumentKind = resource.Of(resource.Kind{
	Name: "Tenant", Component: "TenantDocument", Noun: "tenant", Path: "tenants", Read: domain.PermRead, Edit: domain.PermEdit, Partial: true,
}, resource.Rules[TenantSettings]{})

// TenantSettings are what is written of a tenant beside its name.
type TenantSettings struct {
	MaxRunning int           `json:"maxRunning,omitempty" minimum:"0" maximum:"100000" doc:"Runs that may go on at once; 0: no limit"`
	Quotas     *TenantQuotas `json:"quotas,omitempty" doc:"How much the tenant may have; 0: no limit. Kinds that are left out have their default"`
	Retention  *TenantKeeps  `json:"retention,omitempty" doc:"How long ended runs are kept; default: as the server says"`
}

// TenantQuotas are quotas by kind, as domain.QuotaKind names them.
type TenantQuotas struct {
	Jobs              *int64 `json:"jobs,omitempty" minimum:"0" maximum:"100000000" doc:"Jobs"`
	FiresPerMinute    *int64 `json:"fires_per_minute,omitempty" minimum:"0" maximum:"100000000" doc:"Fires of all enabled jobs in a minute"`
	Executors         *int64 `json:"executors,omitempty" minimum:"0" maximum:"100000000" doc:"Executors"`
	Instances         *int64 `json:"instances,omitempty" minimum:"0" maximum:"100000000" doc:"Instances that have not gone"`
	Users             *int64 `json:"users,omitempty" minimum:"0" maximum:"100000000" doc:"Members"`
	APIKeys           *int64 `json:"api_keys,omitempty" minimum:"0" maximum:"100000000" doc:"API keys"`
	Timers            *int64 `json:"timers,omitempty" minimum:"0" maximum:"100000000" doc:"Pending timers"`
	StoredBytes       *int64 `json:"stored_bytes,omitempty" minimum:"0" maximum:"1125899906842624" doc:"Bytes of pending timers, revisions, versions and catalogues"`
	APICallsPerSecond *int64 `json:"api_calls_per_second,omitempty" minimum:"0" maximum:"100000000" doc:"API calls that one node answers in a second"`
}

// TenantKeeps is for how long ended runs are kept.
type TenantKeeps struct {
	RunDays  int `json:"runDays,omitempty" minimum:"0" maximum:"3650" doc:"How many days runs are kept after their end; 0: as the server says"`
	LogDays  int `json:"logDays,omitempty" minimum:"0" maximum:"3650" doc:"The same of their logs"`
	RunCount int `json:"runCount,omitempty" minimum:"0" maximum:"10000" doc:"How many of the newest ended runs of each job are kept, if there are more; 0: any number"`
}

// tenants are tenants as documents.
type tenants struct {
	// fixed after construction
	store interface {
		store.Accounts
		store.Quotas
		store.Limits
		store.RetentionRules
	}
	newID     func() int64
	now       func() time.Time
	made      func(ctx context.Context, t domain.Tenant)
	retention *retention
	log       *slog.Logger
}

func (ts *tenants) register(server *web.Server) {
	k := &document.Kept[TenantSettings]{Kind: tenantDocumentKind, NewID: ts.newID, Read: ts.readDocuments, Check: ts.check, Write: ts.write}
	op := k.Add(server)
	op.Tag, op.Summary = "access", "The tenant as a document"
	op.Description = "With its quotas, its limit and its retention, as apply-documents takes it."
	web.Register(server, web.May(domain.PermRead), op, func(ctx context.Context, id auth.Identity, _ *web.PageQuery) (*document.List, error) {
		t, err := ts.store.FindTenant(ctx, id.Tenant)
		if err != nil {
			return nil, err
		}
		d, err := ts.document(ctx, &t)
		if err != nil {
			return nil, err
		}
		return k.Page([]*resource.Document[TenantSettings]{d}, nil)
	})
}

// document reads what belongs to a tenant.
func (ts *tenants) document(ctx context.Context, t *domain.Tenant) (*resource.Document[TenantSettings], error) {
	d := &resource.Document[TenantSettings]{Meta: resource.Meta{
		ID: int64(t.ID), Tenant: t.ID, Name: t.Name, Version: t.Version, CreatedAt: t.CreatedAt, UpdatedAt: t.CreatedAt,
	}}
	limits, err := ts.store.ListLimits(ctx, t.ID)
	for _, l := range limits {
		if l.Executor == 0 {
			d.Spec.MaxRunning = l.Max
		}
	}
	if err != nil {
		return nil, err
	}
	quotas, err := ts.store.ListQuotas(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	own := map[domain.QuotaKind]int64{}
	for _, q := range quotas {
		if !q.Default {
			own[q.Kind] = q.Max
		}
	}
	rule, err := ts.store.FindRetention(ctx, t.ID, 0)
	if err != nil {
		return nil, err
	}
	if rule.Retention != (domain.Retention{}) {
		keeps := TenantKeeps(rule.Retention)
		d.Spec.Retention = &keeps
	}
	if len(own) == 0 {
		return d, nil
	}
	raw, err := json.Marshal(own)
	if err == nil {
		err = json.Unmarshal(raw, &d.Spec.Quotas)
	}
	return d, err
}

// readDocuments finds tenants by name. A caller who may not ask for others finds its own only.
func (ts *tenants) readDocuments(ctx context.Context, id auth.Identity, names []string, ids []int64) ([]*resource.Document[TenantSettings], error) {
	out := make([]*resource.Document[TenantSettings], len(names)+len(ids))
	for i := range out {
		var t domain.Tenant
		var err error
		if i < len(names) {
			t, err = ts.store.FindTenantByName(ctx, names[i])
		} else {
			t, err = ts.store.FindTenant(ctx, domain.TenantID(ids[i-len(names)]))
		}
		if domain.Is(err, domain.CodeNotFound) || err == nil && t.ID != id.Tenant && !id.PlatformAdmin {
			continue
		}
		if err == nil {
			out[i], err = ts.document(ctx, &t)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// check asks for the rights that the operations for the same settings have.
func (ts *tenants) check(_ context.Context, id auth.Identity, d *resource.Draft[TenantSettings], _ resource.Coming) error {
	if d.Spec.Quotas != nil && *d.Spec.Quotas == (TenantQuotas{}) {
		d.Spec.Quotas = nil
	}
	if d.Spec.Retention != nil && *d.Spec.Retention == (TenantKeeps{}) {
		d.Spec.Retention = nil
	}
	if !domain.TenantNames.MatchString(d.Name) {
		return domain.Invalid("body.name", "must be lower-case letters, digits and hyphens, beginning with a letter")
	}
	if d.Old == nil {
		d.Old = &resource.Document[TenantSettings]{}
		if !id.PlatformAdmin {
			return domain.Errorf(domain.CodeDenied, "the document %q is not about your tenant: only a platform administrator may make tenants and change others", d.Name)
		}
	}
	if !id.PlatformAdmin && (d.Old.Spec.MaxRunning != d.Spec.MaxRunning || !sameJSON(d.Old.Spec.Quotas, d.Spec.Quotas)) {
		return domain.Errorf(domain.CodeDenied, "only a platform administrator may change the quotas and the limit of a tenant")
	}
	if sameJSON(d.Old.Spec.Retention, d.Spec.Retention) {
		return nil
	}
	if !id.May(domain.PermAdmin) {
		return domain.Errorf(domain.CodeDenied, "your role %q does not allow to change for how long runs are kept", id.Role)
	}
	var r reader
	ts.retention.check(&r, "body.spec.retention.", RetentionWrite(keepsOf(&d.Spec)))
	return r.Err()
}

func sameJSON(a, b any) bool {
	first, err := json.Marshal(a)
	second, wrong := json.Marshal(b)
	return err == nil && wrong == nil && string(first) == string(second)
}

func keepsOf(s *TenantSettings) TenantKeeps {
	if s.Retention == nil {
		return TenantKeeps{}
	}
	return *s.Retention
}

// quotasOf are all quotas of a document. -1: the default.
func quotasOf(s *TenantSettings) (map[domain.QuotaKind]int64, error) {
	out := map[domain.QuotaKind]int64{}
	for _, kind := range domain.QuotaKinds {
		out[kind] = -1
	}
	if s.Quotas == nil {
		return out, nil
	}
	raw, err := json.Marshal(s.Quotas)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

// write writes the parts that differ, each in its own transaction. If it ends in between, the
// next apply writes the others.
func (ts *tenants) write(ctx context.Context, id auth.Identity, meta resource.Meta, old *resource.Document[TenantSettings], spec *TenantSettings) (int64, error) {
	t := domain.Tenant{ID: domain.TenantID(meta.ID), Name: meta.Name, Version: max(meta.Version, 1), CreatedAt: ts.now()}
	was := TenantSettings{}
	if old == nil {
		if err := ts.store.CreateTenant(ctx, t); err != nil {
			return 0, err
		}
		if ts.made != nil && id.Kind != auth.KindNode { // a start ends with it, after the channels of its file
			ts.made(ctx, t)
		}
	} else {
		was = old.Spec
	}
	if !sameJSON(was.Quotas, spec.Quotas) {
		quotas, err := quotasOf(spec)
		if err != nil {
			return 0, err
		}
		if err := ts.store.SetQuotas(ctx, store.SetQuotasParams{Tenant: t.ID, Max: quotas, By: id.Actor()}); err != nil {
			return 0, fmt.Errorf("set quotas: %w", err)
		}
	}
	if was.MaxRunning != spec.MaxRunning {
		if err := ts.store.SetLimit(ctx, domain.Limit{LimitKey: domain.LimitKey{Tenant: t.ID}, Max: spec.MaxRunning}); err != nil {
			return 0, fmt.Errorf("set the limit of the tenant: %w", err)
		}
	}
	if keepsOf(&was) != keepsOf(spec) {
		if _, err := ts.store.SetRetention(ctx, store.SetRetentionParams{Tenant: t.ID, Retention: domain.Retention(keepsOf(spec)), By: id.Actor()}); err != nil {
			return 0, fmt.Errorf("set retention: %w", err)
		}
	}
	ts.log.Info("tenant applied", "tenant_id", t.ID, "tenant", t.Name, "by", id.Actor())
	return t.Version, nil
}
