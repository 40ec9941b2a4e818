package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// APIKey lets a program act in the tenant.
type APIKey struct {
	ID         string  `json:"id" doc:"Id of the key, a decimal string"`
	Name       string  `json:"name" doc:"What the key is for; shown beside what it does"`
	Prefix     string  `json:"prefix" doc:"The secret's first characters, to recognise it by"`
	Role       string  `json:"role" doc:"What it may do: a role, or several joined by + such as caller+manager"`
	CreatedAt  string  `json:"createdAt" format:"date-time" doc:"When it was made"`
	CreatedBy  string  `json:"createdBy" doc:"The user or key that made it; it ends with that user's account in the tenant"`
	LastUsedAt *string `json:"lastUsedAt" format:"date-time" doc:"A few seconds behind"`
	ExpiresAt  *string `json:"expiresAt" format:"date-time" doc:"null = never"`

	Executors    []string `json:"executors" doc:"The executors that all its rights are bound to, beside the handlers of callHandlers; both empty: it is about the whole tenant"`
	CallHandlers []string `json:"callHandlers" doc:"Single handlers that it may call and set timers of, each executor/handler"`
}

// CreatedAPIKey is the only answer with the secret.
type CreatedAPIKey struct {
	APIKey
	Secret string `json:"secret" doc:"Shown once; it cannot be read again"`
}

func apiKeyOf(k domain.APIKey) APIKey {
	return APIKey{
		Executors: web.EmptyIfNil(k.Scope.Executors), CallHandlers: web.EmptyIfNil(k.Scope.Handlers),
		ID: domain.UserID(k.ID).String(), Name: k.Name, Prefix: k.Prefix, Role: string(k.Role),
		CreatedAt: web.Instant(k.CreatedAt), CreatedBy: k.CreatedBy,
		LastUsedAt: web.InstantOrNull(k.LastUsedAt), ExpiresAt: web.InstantOrNull(k.ExpiresAt),
	}
}

type createAPIKeyInput struct {
	Body struct {
		Name      string  `json:"name" minLength:"1" maxLength:"128" doc:"What the key is for"`
		Role      string  `json:"role" minLength:"1" maxLength:"64" doc:"What it may do: caller (call handlers, and see and cancel its own calls), timer (set, see, move and cancel timers), viewer, manager (see, change and run jobs, and see and stop runs), operator, editor, scripter or admin; or several joined by + such as caller+timer+manager"`
		ExpiresAt *string `json:"expiresAt,omitempty" format:"date-time" doc:"Default: never"`

		Executors    []string `json:"executors,omitempty" minItems:"1" maxItems:"30" doc:"Names of the executors that all its rights are bound to: it sees and manages only their jobs and runs, calls only their handlers and sets only their timers. Default: all, or those of callHandlers. Refused with the roles scripter and admin"`
		CallHandlers []string `json:"callHandlers,omitempty" minItems:"1" maxItems:"30" doc:"Single handlers that it may call and set timers of, each executor/handler. Only with the roles caller and timer"`
	}
}

func (a *api) registerAPIKeys() {
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/api-keys", ID: "list-api-keys", Tag: "access", Summary: "List API keys",
		Description: "Those that are not revoked. Secrets are not shown again.",
	}, func(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[APIKey], error) {
		keys, err := a.deps.Store.ListAPIKeys(ctx, id.Tenant)
		if err != nil {
			return nil, err
		}
		items := []APIKey{}
		for _, k := range keys {
			if k.RevokedAt.IsZero() {
				items = append(items, apiKeyOf(k))
			}
		}
		return web.SlicePage(items, in.ShortPage, "api-keys")
	})
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/api-keys", ID: "create-api-key", Tag: "access",
		Summary:     "Make an API key",
		Description: "The answer holds the secret, which is shown only now. A key can do no more than its maker may at that moment, and ends when its maker is removed from the tenant or locked; what is to outlast people is made by an account of its own.", Status: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *createAPIKeyInput) (*struct{ Body CreatedAPIKey }, error) {
		var r web.Reader
		name := r.Name("body.name", in.Body.Name, domain.MaxNameLength)
		expires := r.Future("body.expiresAt", in.Body.ExpiresAt, a.deps.Now())
		role, scope := keyRights(&r, "body.", in.Body.Role, in.Body.Executors, in.Body.CallHandlers)
		if err := r.Err(); err != nil {
			return nil, err
		}
		if err := a.exist(ctx, id.Tenant, "body.", scope, nil); err != nil {
			return nil, err
		}
		key, secret, err := a.deps.Auth.CreateAPIKey(ctx, id, name, role, expires, scope)
		if err != nil {
			return nil, err
		}
		return &struct{ Body CreatedAPIKey }{CreatedAPIKey{APIKey: apiKeyOf(key), Secret: secret}}, nil
	})
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/api-keys/{id}", ID: "revoke-api-key", Tag: "access",
		Summary: "Revoke an API key", Description: "It ends within 5 seconds on all nodes.", Status: http.StatusNoContent,
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
		key, err := domain.ParseID[domain.UserID](in.ID)
		if err != nil {
			return nil, err
		}
		return nil, a.deps.Auth.RevokeAPIKey(ctx, id.Tenant, int64(key))
	})
}

// keyRights reads what a key may do.
func keyRights(r *web.Reader, below, text string, only, handlers []string) (domain.Role, domain.Scope) {
	role, ok := domain.KeyRole(text)
	if !ok {
		r.NoneOf(below+"role", text, domain.Collect(domain.KeyRoles, func(one *domain.Role) string { return string(*one) }))
	}
	for i, handler := range handlers {
		target(r, fmt.Sprintf("%scallHandlers[%d]", below, i), handler)
	}
	scope := domain.Scope{Executors: executors(r, below, only), Handlers: handlers}
	boundable(r, below, role, scope)
	return role, scope
}

// executors reads the executors that a role is to be bound to.
func executors(r *web.Reader, below string, names []string) []string {
	for i, name := range names {
		if !domain.ExecutorNames.MatchString(name) {
			r.Fail(fmt.Sprintf("%sexecutors[%d]", below, i), name, "must be the name of an executor")
		}
	}
	return names
}

// exist refuses executors of a scope that the tenant does not have. A name for which but is true is
// not looked up: the scope had it before, or the same request creates the executor.
func (a *api) exist(ctx context.Context, tenant domain.TenantID, below string, scope domain.Scope, but func(name string) bool) error {
	var r web.Reader
	var known []string
	look := func(location, name string) error {
		if but != nil && but(name) || slices.Contains(known, name) {
			return nil
		}
		ids, err := a.deps.Store.FindExecutorIDs(ctx, tenant, []string{name})
		if err != nil || len(ids) > 0 {
			return err
		}
		if known == nil {
			all, err := a.deps.Store.ListExecutors(ctx, store.ListExecutorsParams{Tenant: tenant, Limit: maxNear})
			if err != nil {
				return err
			}
			known = domain.Collect(all, func(e *store.ExecutorSummary) string { return e.Name })
		}
		r.Unknown(location, name, known, "there is no executor %q: create it first", name)
		return nil
	}
	for i, name := range scope.Executors {
		if err := look(fmt.Sprintf("%sexecutors[%d]", below, i), name); err != nil {
			return err
		}
	}
	for i, handler := range scope.Handlers {
		name, _, _ := strings.Cut(handler, "/")
		if err := look(fmt.Sprintf("%scallHandlers[%d]", below, i), name); err != nil {
			return err
		}
	}
	return r.Err()
}

// maxNear is how many executors are read to find one with a name that is close.
const maxNear = 1000

// boundable checks that a role can be bound so.
func boundable(r *web.Reader, below string, role domain.Role, scope domain.Scope) {
	switch list, why := domain.WrongScope(role, scope); list {
	case "executors":
		r.Fail(below+"executors", scope.Executors, "%s", why)
	case "handlers":
		r.Fail(below+"callHandlers", scope.Handlers, "%s", why)
	}
}

// target checks "executor/handler".
func target(r *web.Reader, location, text string) {
	executor, handler, _ := strings.Cut(text, "/")
	if !domain.ExecutorNames.MatchString(executor) || strings.TrimSpace(handler) != handler {
		r.Fail(location, text, "must be an executor and one of its handlers, such as shop/cancel-order")
		return
	}
	r.Name(location, handler, domain.MaxNameLength)
}
