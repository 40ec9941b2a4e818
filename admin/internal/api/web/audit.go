package web

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// audit records operations. All of it is fixed before the server answers.
type audit struct {
	record    func(context.Context, domain.AuditEntry) // nil: nothing is recorded
	unaudited map[string]string                        // why operations are not recorded, by id
	kinds     map[string]string                        // of the objects of operations, by id; empty: it changes none
	log       *slog.Logger
}

// Audit makes the server record operations. Each operation that writes gets a pending entry,
// which its first transaction stores. record stores an entry of a refusal, or of an operation
// without a transaction that asks another host. Without Audit nothing is recorded.
func (s *Server) Audit(record func(ctx context.Context, e domain.AuditEntry)) {
	s.audit.record = record
}

// Records returns a context for an operation without a request. The audit log records its writes
// of documents under the name of the operation. Without Audit it is ctx itself.
func (s *Server) Records(ctx context.Context, id auth.Identity, operation string) context.Context {
	if s.audit.record == nil {
		return ctx
	}
	pending := domain.NewPendingAudit(domain.AuditEntry{Tenant: id.Tenant, Actor: id.Actor(), Operation: operation, Outcome: domain.AuditDone})
	pending.Drop() // each document has an entry of its own
	return domain.WithAudit(ctx, pending)
}

// writes reports whether an operation is recorded.
func (op Operation) writes() bool { return op.Method != http.MethodGet && op.Unaudited == "" }

// AuditNames are the operations that entries of requests can have, and the kinds of objects that
// requests change. They are known when all operations and kinds of documents are registered.
func (s *Server) AuditNames() (operations, kinds []string) {
	for operation, kind := range s.audit.kinds {
		if operations = append(operations, operation); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	for _, k := range s.Kinds().List() {
		if !k.Local {
			kinds = append(kinds, k.ID())
		}
	}
	slices.Sort(operations)
	slices.Sort(kinds)
	return operations, slices.Compact(kinds)
}

// Unaudited are the operations that write and leave no audit entry, with the reasons.
func (s *Server) Unaudited() map[string]string { return s.audit.unaudited }

// auditEntry is what a request tells of an operation before it begins.
func auditEntry(r *Request, p Policy, op Operation, id auth.Identity) domain.AuditEntry {
	e := domain.AuditEntry{
		Tenant: id.Tenant, Actor: id.Actor(), User: id.User, Key: id.APIKey, Operation: op.ID, Outcome: domain.AuditDone,
		Address: r.IP, Request: r.ID, AuditObject: domain.AuditObject{Kind: op.auditKind()},
	}
	if !id.Known() {
		e.Actor = ""
	}
	if p.platform {
		e.Tenant = 0
	}
	if r.params != nil {
		e.AuditObject.ID = lastParam(r.params)
	}
	return e
}

// lastParam is the value of the last parameter of a path, which names the object.
func lastParam(params gin.Params) string {
	if len(params) == 0 {
		return ""
	}
	return params[len(params)-1].Value
}

// auditKind is the noun of the operation's object, by its path. The object is the last
// parameter's, or one that is added to the list at the end of the path.
func (op Operation) auditKind() string {
	segments := strings.Split(strings.TrimPrefix(op.Path, Base+"/"), "/")
	if segments[0] == "auth" {
		return "session"
	}
	kind := segments[0]
	for i, s := range segments {
		last := i == len(segments)-1
		if s == "by-name" {
			break // the parameter is a name of the kind before it
		}
		if !last && strings.HasPrefix(segments[i+1], "{") || last && op.Method == http.MethodPost && strings.HasSuffix(s, "s") {
			kind = s
		}
	}
	return strings.TrimSuffix(kind, "s")
}

// nameIn is the name that a body gives to its object.
func nameIn(in any) string {
	body := reflect.Indirect(reflect.ValueOf(in)).FieldByName("Body")
	if body.Kind() == reflect.Pointer {
		body = body.Elem()
	}
	if body.Kind() != reflect.Struct {
		return ""
	}
	for _, name := range []string{"Name", "Username"} {
		if f := body.FieldByName(name); f.IsValid() && f.Kind() == reflect.String {
			return f.String()
		}
	}
	return ""
}

// around runs an operation with its pending entry.
func (a *audit) around(ctx context.Context, p Policy, op Operation, in any, run func(ctx context.Context) error) error {
	r, id := RequestOf(ctx), identityOf(ctx)
	if a.record == nil {
		return run(ctx)
	}
	var pending *domain.PendingAudit
	if op.writes() {
		e := auditEntry(r, p, op, id)
		e.Name = nameIn(in)
		pending = domain.NewPendingAudit(e)
		ctx = domain.WithAudit(ctx, pending)
	}
	err := run(ctx)
	switch {
	case err != nil:
		a.refuse(ctx, p, op, id, nameIn(in), err)
	case op.Reaches && pending.Missing(): // it asked another host, and wrote nothing here
		a.record(domain.WithAudit(ctx, nil), pending.Entry())
	case pending.Missing():
		a.log.Error("operation left no audit entry", "operation", op.ID, "request_id", r.ID)
	}
	return err
}

// refuse records that an operation was refused for lack of rights or credentials. A token
// that expired is renewed by its client, and no refusal.
func (a *audit) refuse(ctx context.Context, p Policy, op Operation, id auth.Identity, name string, err error) {
	code := domain.CodeOf(err)
	signIn := op.ID == "login"
	if a.record == nil || code != domain.CodeDenied && code != domain.CodeUnauthenticated && code != domain.CodeTenantDisabled || !id.Known() && !signIn && !RequestOf(ctx).bearer {
		return
	}
	e := auditEntry(RequestOf(ctx), p, op, id)
	e.Outcome, e.Code = domain.AuditRefused, code
	if signIn {
		e.Actor = name // as it was given
	} else {
		e.Name = name
	}
	a.record(domain.WithAudit(ctx, nil), e)
}
