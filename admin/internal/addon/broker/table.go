package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Table is the table of connections. Secrets come and go sealed.
type Table struct {
	*db.DB
	// EnsureBuiltIn makes the tenant's built-in executor, which publishes, in the transaction
	// of its first connection.
	EnsureBuiltIn func(t *db.Tx, tenant domain.TenantID, now int64) error
}

type connectionRow struct {
	ID        int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID  int64  `gorm:"column:tenant_id"`
	Name      string `gorm:"column:name"`
	Version   int64  `gorm:"column:version"`
	Spec      string `gorm:"column:spec"`
	Secrets   []byte `gorm:"column:secrets"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	UpdatedAt int64  `gorm:"column:updated_at;autoUpdateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
	UpdatedBy string `gorm:"column:updated_by"`
}

func (connectionRow) TableName() string { return "connections" }

// connectionDocument is the column spec.
type connectionDocument struct {
	Description    string       `json:"description,omitempty"`
	Broker         string       `json:"broker"`
	Addresses      []string     `json:"addresses"`
	Username       string       `json:"username,omitempty"`
	Mechanism      string       `json:"mechanism,omitempty"`
	TLS            *tlsDocument `json:"tls,omitempty"` // nil: not enabled
	VirtualHost    string       `json:"virtualHost,omitempty"`
	Database       int          `json:"database,omitempty"`
	SentinelMaster string       `json:"sentinelMaster,omitempty"`
	HasPassword    bool         `json:"hasPassword,omitempty"`
	HasClientKey   bool         `json:"hasClientKey,omitempty"`
}

type tlsDocument struct {
	Authorities string `json:"authorities,omitempty"`
	ServerName  string `json:"serverName,omitempty"`
	Certificate string `json:"certificate,omitempty"`
}

func toConnectionRow(c *noun.Connection) (connectionRow, error) {
	s := &c.Spec
	document := connectionDocument{
		Description: s.Description, Broker: string(s.Broker), Addresses: s.Addresses, Username: s.Username, Mechanism: s.Mechanism,
		VirtualHost: s.VirtualHost, Database: s.Database, SentinelMaster: s.SentinelMaster, HasPassword: c.HasPassword, HasClientKey: c.HasClientKey,
	}
	if s.TLS.Enabled {
		document.TLS = &tlsDocument{s.TLS.Authorities, s.TLS.ServerName, s.TLS.Certificate}
	}
	text, err := json.Marshal(document)
	if err != nil {
		return connectionRow{}, fmt.Errorf("encode connection: %w", err)
	}
	secrets := c.Secrets
	if secrets == nil {
		secrets = []byte{}
	}
	return connectionRow{
		ID: int64(c.ID), TenantID: int64(c.TenantID), Name: s.Name, Version: c.Version, Spec: string(text), Secrets: secrets,
		CreatedBy: c.CreatedBy, UpdatedBy: c.UpdatedBy,
	}, nil
}

func (r *connectionRow) connection() (noun.Connection, error) {
	var d connectionDocument
	if err := json.Unmarshal([]byte(r.Spec), &d); err != nil {
		return noun.Connection{}, fmt.Errorf("decode connection %d: %w", r.ID, err)
	}
	c := noun.Connection{
		ID: noun.ConnectionID(r.ID), TenantID: domain.TenantID(r.TenantID), Version: r.Version, Secrets: r.Secrets,
		HasPassword: d.HasPassword, HasClientKey: d.HasClientKey,
		CreatedAt: db.Instant(r.CreatedAt), UpdatedAt: db.Instant(r.UpdatedAt), CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
		Spec: noun.ConnectionSpec{
			Name: r.Name, Description: d.Description, Broker: noun.Broker(d.Broker), Addresses: d.Addresses, Username: d.Username,
			Mechanism: d.Mechanism, VirtualHost: d.VirtualHost, Database: d.Database, SentinelMaster: d.SentinelMaster,
		},
	}
	if d.TLS != nil {
		c.Spec.TLS = noun.ConnectionTLS{Enabled: true, Authorities: d.TLS.Authorities, ServerName: d.TLS.ServerName, Certificate: d.TLS.Certificate}
	}
	return c, nil
}

// ListAllConnections reads connections whoever they belong to, for an operator who
// looks whether they lead anywhere. There is no more of them than limit.
func (s *Table) ListAllConnections(ctx context.Context, limit int) ([]noun.Connection, error) {
	rows, err := db.FindBy[connectionRow](ctx, s.DB, "list connections", func(g *gorm.DB) *gorm.DB { return g.Order("id").Limit(limit) })
	if err != nil {
		return nil, err
	}
	return domain.TryCollect(rows, (*connectionRow).connection)
}

func (s *Table) definition() record.Definition[noun.ConnectionID] {
	return record.Definition[noun.ConnectionID]{DB: s.DB, Noun: "connection", Row: &connectionRow{}, Most: noun.MaxConnections}
}

// CreateConnection writes version 1. The tenant has the built-in executor then. CodeConflict:
// the name is taken, or there are noun.MaxConnections.
func (s *Table) CreateConnection(ctx context.Context, c noun.Connection) (noun.Connection, error) {
	c.Version, c.UpdatedBy = 1, c.CreatedBy
	row, err := toConnectionRow(&c)
	if err != nil {
		return noun.Connection{}, err
	}
	err = s.definition().Create(ctx, c.TenantID, row.Name, func(t *db.Tx, now time.Time) error {
		row.CreatedAt, row.UpdatedAt = db.Millis(now), db.Millis(now)
		if err := t.Gorm.Create(&row).Error; err != nil {
			return err
		}
		return s.EnsureBuiltIn(t, c.TenantID, row.CreatedAt)
	})
	if err != nil {
		return noun.Connection{}, err
	}
	return s.FindConnection(ctx, c.TenantID, c.ID)
}

// UpdateConnection writes the spec and the secrets, and adds one to the version.
// CodeConflict: the name is taken. CodeRevisionMismatch: it is at another version than
// c.Version.
func (s *Table) UpdateConnection(ctx context.Context, c noun.Connection) (noun.Connection, error) {
	row, err := toConnectionRow(&c)
	if err != nil {
		return noun.Connection{}, err
	}
	err = s.definition().Update(ctx, c.TenantID, c.ID, c.Version, row.Name, func(t *db.Tx, now time.Time) error {
		_, err := t.Exec(t.Ctx, "UPDATE connections SET name = ?, version = ?, spec = ?, secrets = ?, updated_at = ?, updated_by = ? WHERE id = ? AND tenant_id = ?",
			row.Name, row.Version+1, row.Spec, row.Secrets, db.Millis(now), row.UpdatedBy, row.ID, row.TenantID)
		return err
	})
	if err != nil {
		return noun.Connection{}, err
	}
	return s.FindConnection(ctx, c.TenantID, c.ID)
}

// DeleteConnection forgets it. Runs that name it fail from then on.
func (s *Table) DeleteConnection(ctx context.Context, tenant domain.TenantID, id noun.ConnectionID) error {
	return s.definition().Delete(ctx, tenant, id)
}

// FindConnection finds one of the tenant. CodeNotFound: it has no such connection.
func (s *Table) FindConnection(ctx context.Context, tenant domain.TenantID, id noun.ConnectionID) (noun.Connection, error) {
	return s.findConnection(ctx, "id = ? AND tenant_id = ?", int64(id), int64(tenant))
}

// FindConnectionByName is FindConnection by its name.
func (s *Table) FindConnectionByName(ctx context.Context, tenant domain.TenantID, name string) (noun.Connection, error) {
	return s.findConnection(ctx, "tenant_id = ? AND name = ?", int64(tenant), name)
}

func (s *Table) findConnection(ctx context.Context, where string, args ...any) (noun.Connection, error) {
	row, err := db.FindOne[connectionRow](ctx, s.DB, "find connection", where, args...)
	if err != nil {
		return noun.Connection{}, err
	}
	return row.connection()
}

// ListConnections lists all of a tenant by name.
func (s *Table) ListConnections(ctx context.Context, tenant domain.TenantID) ([]noun.Connection, error) {
	rows, err := db.FindAll[connectionRow](ctx, s.DB, "list connections", "name", "tenant_id = ?", int64(tenant))
	if err != nil {
		return nil, err
	}
	return domain.TryCollect(rows, (*connectionRow).connection)
}
