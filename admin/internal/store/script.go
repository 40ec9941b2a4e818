package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Scripts keeps scripts with their revisions, and what agents may do.
type Scripts interface {
	// CreateScript writes revision 1. CodeConflict: the name is taken.
	CreateScript(ctx context.Context, p CreateScriptParams) (domain.Script, error)
	// ReviseScript writes a new revision; if the newest one has the same content, the
	// script stays at that. CodeRevisionMismatch: it is at another
	// revision than IfRevision (0 = any). Jobs that follow the newest run it
	// from the next attempt on that is offered.
	ReviseScript(ctx context.Context, p ReviseScriptParams) (domain.Script, error)
	// DeleteScript removes it from all lists; its revisions stay for the time of
	// Retention. CodeConflict: jobs use it.
	DeleteScript(ctx context.Context, tenant domain.TenantID, id domain.ScriptID, by string) error

	FindScript(ctx context.Context, tenant domain.TenantID, id domain.ScriptID) (domain.Script, error)
	FindScriptByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Script, error)
	// ListScripts lists them by name.
	ListScripts(ctx context.Context, p ListScriptsParams) ([]domain.Script, error)
	// ListScriptRevisions lists the newest first, without contents.
	ListScriptRevisions(ctx context.Context, tenant domain.TenantID, id domain.ScriptID, limit int) ([]domain.ScriptRevision, error)
	FindScriptRevision(ctx context.Context, tenant domain.TenantID, id domain.ScriptID, revision int64) (domain.ScriptRevision, error)
	// ListScriptJobs returns the jobs that use a script, by name.
	ListScriptJobs(ctx context.Context, tenant domain.TenantID, id domain.ScriptID, limit int) ([]JobRef, error)
	// DeliverScript returns what a run of the use gets. A script that is gone is
	// CodeNotFound.
	DeliverScript(ctx context.Context, tenant domain.TenantID, use domain.ScriptUse) (domain.Script, domain.ScriptRevision, error)

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

// SignFunc signs a revision's digest.
type SignFunc func(s domain.Script, revision int64, sha256 []byte) []byte

type CreateScriptParams struct {
	Script  domain.Script
	Content string
	Note    string
	Sign    SignFunc
}

type ReviseScriptParams struct {
	Tenant     domain.TenantID
	ID         domain.ScriptID
	IfRevision int64
	Content    string
	// Description replaces the script's; nil keeps it.
	Description *string
	Note        string
	By          string
	Sign        SignFunc
}

type ListScriptsParams struct {
	Tenant domain.TenantID
	After  string // name; empty = from the first
	Limit  int
}
