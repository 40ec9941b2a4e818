package broker

import (
	"context"
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/document"
)

// Kind is the kind of documents that are connections.
var Kind = resource.Of(resource.Kind{
	Name: "Connection", Noun: "connection", Path: "connections", Most: noun.MaxConnections,
	About: "A connection leads to a message broker.", Read: domain.PermRead, Edit: domain.PermEdit,
	Purpose: secret.PurposeConnection,
	Secrets: []resource.SecretField{
		{Name: noun.SecretPassword, About: "Password, token, or text of a NATS credentials file"},
		{Name: noun.SecretClientKey, About: "Private key in PEM that belongs to tls.certificate"},
	},
	Notes: resource.Notes{
		Create: "It is opened when the first message needs it; test-connection tries it. A tenant may have 64.",
		Update: "Secrets that are left out stay, unless they would be sent to another receiver. All nodes use it within two seconds; messages under way end as they began.",
		Delete: "Runs that still name it fail from then on, two seconds later at the latest.",
	},
}, resource.Rules[noun.ConnectionSpec]{
	Complete: (*noun.ConnectionSpec).Complete,
	Check: func(_ context.Context, d *resource.Draft[noun.ConnectionSpec], c *domain.Checker) error {
		noun.CheckConnection(d, c)
		return nil
	},
	SameReceiver: (*noun.ConnectionSpec).SameReceiver,
	Older:        older,
})

// older reads a row of before the mechanism of documents.
func older(text []byte) (spec noun.ConnectionSpec, marks map[string]string, err error) {
	var was struct {
		TLS          *noun.ConnectionTLS `json:"tls"` // nil: not enabled
		HasPassword  bool                `json:"hasPassword"`
		HasClientKey bool                `json:"hasClientKey"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return spec, nil, err
	}
	if err := json.Unmarshal(text, &was); err != nil {
		return spec, nil, err
	}
	spec.TLS.Enabled = was.TLS != nil
	return spec, resource.OlderMarks(map[string]bool{noun.SecretPassword: was.HasPassword, noun.SecretClientKey: was.HasClientKey}), nil
}

// Table is the table of connections.
type Table struct{ *document.Table }

// NewTable is the table in a database. ensureBuiltIn makes the tenant's built-in executor, which
// publishes, in the transaction of its first connection.
func NewTable(database *db.DB, ensureBuiltIn func(t *db.Tx, tenant domain.TenantID, now int64) error) Table {
	return Table{&document.Table{
		DB: database, Kind: Kind, Name: "connections", Jobs: document.Callbacks,
		Created: func(t *db.Tx, row *resource.Row, now int64) error { return ensureBuiltIn(t, row.Tenant, now) },
	}}
}

// FindConnectionByName finds one of the tenant. CodeNotFound: it has no such connection.
func (t Table) FindConnectionByName(ctx context.Context, tenant domain.TenantID, name string) (noun.Connection, error) {
	row, err := t.FindByName(ctx, tenant, name)
	if err != nil {
		return noun.Connection{}, err
	}
	return resource.Read[noun.ConnectionSpec](&row)
}

// ListAllConnections reads connections of all tenants, for an operator who looks whether they
// lead anywhere. There is no more of them than limit.
func (t Table) ListAllConnections(ctx context.Context, limit int) ([]noun.Connection, error) {
	rows, err := t.ListAll(ctx, limit)
	if err != nil {
		return nil, err
	}
	return domain.TryCollect(rows, resource.Read[noun.ConnectionSpec])
}
