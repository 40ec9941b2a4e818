package record

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// ExecutorRow is a row of executors.
type ExecutorRow struct {
	ID          int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID    int64  `gorm:"column:tenant_id"`
	Name        string `gorm:"column:name"`
	Description string `gorm:"column:description"`
	BuiltIn     bool   `gorm:"column:built_in"`
	State       int64  `gorm:"column:state"`
	Note        string `gorm:"column:note"`
	Version     int64  `gorm:"column:version"`
	CreatedAt   int64  `gorm:"column:created_at;autoCreateTime:false"`
	ChangedAt   int64  `gorm:"column:changed_at"`
	// CallbacksTo has one name per line.
	CallbacksTo string `gorm:"column:callbacks_to"`
}

func (ExecutorRow) TableName() string { return "executors" }

// Executor is what the row means.
func (r ExecutorRow) Executor() domain.Executor {
	return domain.Executor{
		ID: domain.ExecutorID(r.ID), TenantID: domain.TenantID(r.TenantID), Name: r.Name,
		Description: r.Description, BuiltIn: r.BuiltIn, State: domain.ExecutorState(r.State), Note: r.Note, Version: r.Version,
		CreatedAt: db.Instant(r.CreatedAt), ChangedAt: db.Instant(r.ChangedAt), CallbacksTo: db.Lines(r.CallbacksTo),
	}
}

// LivingExecutor is the condition for one that is not deleted.
const LivingExecutor = "state <> 3"

// ExecutorName checks that an executor exists in the tenant, and keeps it from being
// deleted until the commit: what the transaction adds to it is not left behind.
func ExecutorName(t *db.Tx, tenant domain.TenantID, id domain.ExecutorID) (string, error) {
	var name string
	err := t.SQL.QueryRowContext(t.Ctx, "SELECT name FROM executors WHERE id = ? AND tenant_id = ? AND "+LivingExecutor+t.Dialect.ForShare(), int64(id), int64(tenant)).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		err = db.NotFound("executor", id)
	}
	return name, err
}

// HandlerRow is a row of handlers.
type HandlerRow struct {
	TenantID     int64   `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	ExecutorID   int64   `gorm:"column:executor_id;primaryKey;autoIncrement:false"`
	Name         string  `gorm:"column:name;primaryKey"`
	Description  string  `gorm:"column:description"`
	InputSchema  []byte  `gorm:"column:input_schema"`
	OutputSchema []byte  `gorm:"column:output_schema"`
	Idempotent   bool    `gorm:"column:idempotent"`
	Calls        *string `gorm:"column:calls"`
	FirstSeenAt  int64   `gorm:"column:first_seen_at"`
	LastSeenAt   int64   `gorm:"column:last_seen_at"`
}

// HandlerBytes is what a row counts for store.MaxHandlerBytes.
const HandlerBytes = "OCTET_LENGTH(description) + COALESCE(OCTET_LENGTH(input_schema), 0) + COALESCE(OCTET_LENGTH(output_schema), 0)"

// Size is about how many bytes of a statement the row takes.
func (r *HandlerRow) Size() int {
	size := len(r.Name) + len(r.Description) + len(r.InputSchema) + len(r.OutputSchema)
	if r.Calls != nil {
		size += len(*r.Calls)
	}
	return size
}

func (HandlerRow) TableName() string { return "handlers" }

// Handler is what the row means.
func (r HandlerRow) Handler() (domain.Handler, error) {
	h := domain.Handler{
		TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), Name: r.Name, Description: r.Description,
		InputSchema: r.InputSchema, OutputSchema: r.OutputSchema, Idempotent: r.Idempotent,
		FirstSeenAt: db.Instant(r.FirstSeenAt), LastSeenAt: db.Instant(r.LastSeenAt),
	}
	if r.Calls == nil {
		return h, nil
	}
	var err error
	if h.Calls, err = DecodeSpec([]byte(*r.Calls)); err != nil {
		return h, fmt.Errorf("calls of handler %q: %w", r.Name, err)
	}
	return h, nil
}

// AliasRow is a former name of an executor.
type AliasRow struct {
	TenantID   int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	Name       string `gorm:"column:name;primaryKey"`
	ExecutorID int64  `gorm:"column:executor_id"`
	CreatedAt  int64  `gorm:"column:created_at;autoCreateTime:false"`
}

func (AliasRow) TableName() string { return "executor_aliases" }
