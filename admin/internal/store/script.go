package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// Scripts keeps scripts with their versions, and what agents may do.
type Scripts interface {
	// ScriptTable keeps scripts as documents. sign signs their versions. Jobs that follow the
	// newest version run it from the next attempt on that is offered. Delete answers
	// CodeConflict while jobs use the script.
	ScriptTable(sign SignFunc) resource.Store
	// FindScript returns the script of a use, for jobs and agents. CodeNotFound: it is gone, or
	// has no such version.
	FindScript(ctx context.Context, tenant domain.TenantID, use domain.ScriptUse) (domain.Script, error)
	FindScriptByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Script, error)
	// ListScriptJobs returns the jobs that use a script, by name.
	ListScriptJobs(ctx context.Context, tenant domain.TenantID, id domain.ScriptID, limit int) ([]JobRef, error)

	// FindScriptPolicy returns what counts; the zero policy when nobody has
	// decided yet.
	FindScriptPolicy(ctx context.Context, tenant domain.TenantID) (domain.ScriptPolicy, error)
	// SetScriptPolicy keeps the one before. Without Callbacks, or their Secret, these
	// stay as they are; with the first hosts that may be called the tenant gets its
	// built-in executor.
	SetScriptPolicy(ctx context.Context, p domain.ScriptPolicy) (domain.ScriptPolicy, error)
	// ListScriptPolicies lists the newest first.
	ListScriptPolicies(ctx context.Context, tenant domain.TenantID, limit int) ([]domain.ScriptPolicy, error)
	// FindCallbackSecret returns the sealed secret that signs the tenant's callbacks.
	// CodeNotFound: none was made yet.
	FindCallbackSecret(ctx context.Context, tenant domain.TenantID) ([]byte, error)
	// ListBuiltIn returns the built-in executors of all tenants, with what counts
	// for them.
	ListBuiltIn(ctx context.Context) ([]BuiltIn, error)
}

// BuiltIn is a tenant's executor whose instances are the admin nodes.
type BuiltIn struct {
	Tenant    domain.TenantID
	Executor  domain.ExecutorID
	Callbacks *domain.CallbackPolicy // nil: nothing may be called any more
}

// SignFunc signs the digest of a version.
type SignFunc func(s domain.Script, version int64, sha256 []byte) []byte
