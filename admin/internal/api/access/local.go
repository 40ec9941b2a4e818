package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// local plans and makes documents of a kind that only provision files have, with specs of type
// S. T is what is made of one. It is a web.Planner.
type local[S, T any] struct {
	// fixed after construction
	kind *resource.Kind
	// read checks a document. Its errors have locations below body.
	read func(ctx context.Context, id auth.Identity, name string, spec *S, secret string) (T, error)
	// find looks for what the document stands for. left is why it stays another one.
	find func(ctx context.Context, id auth.Identity, t T) (there bool, left, err error)
	make func(ctx context.Context, id auth.Identity, t T) error
}

func (l *local[S, T]) add(s *web.Server) {
	write, _ := document.Describe(s.Kinds().Registry(l.kind), l.kind)
	s.Kinds().Add(web.DocumentKind{Kind: l.kind, Write: write, Planner: l})
}

// secret is the one secret that a document of the kind has.
func (l *local[S, T]) secret(doc *resource.Write) (string, error) {
	name := l.kind.Secrets[0].Name
	text := doc.Secrets[name]
	switch {
	case text == "":
		return "", domain.Invalid("body.secrets."+name, "is missing or empty: say where it is, as in %s: ${{ file:PATH }}", name)
	case strings.ContainsAny(text, "\r\n"):
		return "", domain.Invalid("body.secrets."+name, "has more than one line")
	}
	return text, nil
}

// Plan implements web.Planner.
func (l *local[S, T]) Plan(ctx context.Context, id auth.Identity, docs []resource.Write, _ *web.PlanRequest) (steps []resource.Step, wrong []error, err error) {
	for i := range docs {
		step, err := l.plan(ctx, id, &docs[i])
		if err != nil && web.OurFault(err) {
			return nil, nil, err
		}
		steps, wrong = append(steps, step), append(wrong, err)
	}
	return steps, wrong, nil
}

func (l *local[S, T]) plan(ctx context.Context, id auth.Identity, doc *resource.Write) (resource.Step, error) {
	var spec S
	if err := json.Unmarshal(doc.Spec, &spec); err != nil {
		return resource.Step{}, domain.Misfit("body.spec", err)
	}
	secret, err := l.secret(doc)
	if err != nil {
		return resource.Step{}, err
	}
	t, err := l.read(ctx, id, doc.Name, &spec, secret)
	if err != nil {
		return resource.Step{}, err
	}
	there, left, err := l.find(ctx, id, t)
	step := resource.Step{Action: resource.ActionCreate, Name: doc.Name, Refused: left, Work: t}
	if there {
		step.Action = resource.ActionSame
	}
	return step, err
}

// PlanDelete implements web.Planner. No document deletes a credential.
func (l *local[S, T]) PlanDelete(context.Context, auth.Identity, []string, []int64, resource.Going) ([]resource.Step, error) {
	return nil, nil
}

// Do implements web.Planner.
func (l *local[S, T]) Do(ctx context.Context, id auth.Identity, steps []*resource.Step) []error {
	return web.DoEach(ctx, steps, func(ctx context.Context, step *resource.Step) error {
		domain.AuditOf(ctx).Object(domain.AuditObject{Kind: strings.TrimSuffix(l.kind.Path, "s"), Name: step.Name})
		return l.make(ctx, id, step.Work.(T))
	})
}

// JoinTokenSettings are what is written of a join token beside its name.
type JoinTokenSettings struct {
	Executor    string     `json:"executor" minLength:"1" maxLength:"128" doc:"Name of the executor whose instances register with it"`
	ExpiresAt   *time.Time `json:"expiresAt,omitempty" doc:"Default: never"`
	MaxUses     int        `json:"maxUses,omitempty" minimum:"0" maximum:"1000000" doc:"Processes that may register with it; default 0: no limit"`
	DeclareJobs *bool      `json:"declareJobs,omitempty" doc:"Default true; with false, jobs that the code declares are refused and told"`
}

// APIKeySettings are what is written of an API key beside its name.
type APIKeySettings struct {
	Role         string     `json:"role" minLength:"1" maxLength:"64" doc:"caller, timer, viewer, manager, operator, editor, scripter or admin; or several joined by + such as caller+manager"`
	ExpiresAt    *time.Time `json:"expiresAt,omitempty" doc:"Default: never"`
	Executors    []string   `json:"executors,omitempty" minItems:"1" maxItems:"30" doc:"Names of the executors that all its rights are bound to; default: all, or those of callHandlers"`
	CallHandlers []string   `json:"callHandlers,omitempty" minItems:"1" maxItems:"30" doc:"Single handlers that it may call and set timers of, each executor/handler"`
}

// UserSettings are what is written of an account beside its name.
type UserSettings struct {
	PlatformAdmin      bool         `json:"platformAdmin,omitempty" doc:"It may manage tenants and acts as admin in each of them"`
	MustChangePassword bool         `json:"mustChangePassword,omitempty" doc:"The password is changed at the first sign-in"`
	Memberships        []Membership `json:"memberships,omitempty" maxItems:"100" doc:"Its places in tenants"`
}

// Membership is the place of an account in a tenant.
type Membership struct {
	Tenant    string   `json:"tenant" minLength:"1" maxLength:"64" doc:"Name of the tenant"`
	Role      string   `json:"role" enum:"viewer,operator,editor,scripter,admin" doc:"What the account may do there"`
	Executors []string `json:"executors,omitempty" maxItems:"30" doc:"Names of the executors that the role is bound to; default: the whole tenant"`
}

// Only provision files have these kinds: a request must not carry their secrets.
var (
	joinTokenKind = resource.Of(resource.Kind{
		Name: "JoinToken", Noun: "join token", Path: "join-tokens", Read: domain.PermAdmin, Edit: domain.PermAdmin, Local: true,
		Secrets: []resource.SecretField{{Name: "token", About: "The token itself, such as carillon provision secret join-token makes"}},
	}, resource.Rules[JoinTokenSettings]{})
	apiKeyKind = resource.Of(resource.Kind{
		Name: "ApiKey", Noun: "API key", Path: "api-keys", Read: domain.PermAdmin, Edit: domain.PermAdmin, Local: true,
		Secrets: []resource.SecretField{{Name: "key", About: "The key itself, such as carillon provision secret api-key makes"}},
	}, resource.Rules[APIKeySettings]{})
	userKind = resource.Of(resource.Kind{
		Name: "User", Noun: "user", Path: "users", Read: domain.PermAdmin, Edit: domain.PermAdmin, Local: true, Computes: true,
		Secrets: []resource.SecretField{{Name: "password", About: "Its first password"}},
	}, resource.Rules[UserSettings]{})
)

func (a *api) registerLocal() {
	(&local[JoinTokenSettings, domain.JoinToken]{
		kind: joinTokenKind, read: a.readJoinToken, find: a.findJoinToken,
		make: func(ctx context.Context, _ auth.Identity, t domain.JoinToken) error {
			return a.deps.Store.CreateJoinToken(ctx, t)
		},
	}).add(a.Server)
	(&local[APIKeySettings, domain.APIKey]{
		kind: apiKeyKind, read: a.readAPIKey, find: a.findAPIKey,
		make: func(ctx context.Context, _ auth.Identity, k domain.APIKey) error {
			return a.deps.Store.CreateAPIKey(ctx, k)
		},
	}).add(a.Server)
	(&local[UserSettings, account]{kind: userKind, read: a.readAccount, find: a.findAccount, make: a.makeAccount}).add(a.Server)
}

// imported checks a secret that was made elsewhere. kind is that of carillon provision secret.
func imported(check func(string) (auth.Imported, error), secret, at, kind string) (auth.Imported, error) {
	in, err := check(secret)
	if err != nil {
		err = domain.Invalid("body.secrets."+at, "%s; make one with: carillon provision secret %s", err.Error(), kind)
	}
	return in, err
}

func instantOf(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}

func (a *api) readJoinToken(ctx context.Context, id auth.Identity, name string, spec *JoinTokenSettings, secret string) (domain.JoinToken, error) {
	var r web.Reader
	in, wrong := imported(auth.ImportJoinToken, secret, "token", "join-token")
	e, err := a.deps.Store.FindExecutorByName(ctx, id.Tenant, spec.Executor)
	if domain.Is(err, domain.CodeNotFound) {
		err = domain.Invalid("body.spec.executor", "there is no executor %q: add its document, kind: Executor", spec.Executor)
	}
	if err = errors.Join(r.Add(wrong), r.Add(err)); err == nil {
		err = r.Err()
	}
	return domain.JoinToken{
		ID: a.deps.NewID(), TenantID: id.Tenant, Executor: e.ID, Name: name, Prefix: in.Prefix, Hash: in.Hash, CreatedBy: id.Actor(), CreatedAt: a.deps.Now(),
		ExpiresAt: instantOf(spec.ExpiresAt), MaxUses: spec.MaxUses, NoJobs: spec.DeclareJobs != nil && !*spec.DeclareJobs,
	}, err
}

func (a *api) findJoinToken(ctx context.Context, _ auth.Identity, t domain.JoinToken) (there bool, left, err error) {
	old, err := a.deps.Store.FindJoinTokenByHash(ctx, t.Hash)
	switch {
	case domain.Is(err, domain.CodeNotFound):
		return false, nil, nil
	case err != nil:
		return false, nil, err
	case old.TenantID != t.TenantID || old.Executor != t.Executor:
		left = domain.Errorf(domain.CodeConflict, "its secret is that of another executor's token: make another secret")
	case !old.RevokedAt.IsZero():
		left = domain.Errorf(domain.CodeConflict, "it was revoked: make another secret")
	}
	return true, left, nil
}

func (a *api) readAPIKey(ctx context.Context, id auth.Identity, name string, spec *APIKeySettings, secret string) (domain.APIKey, error) {
	var r web.Reader
	role, scope := keyRights(&r, "body.spec.", spec.Role, spec.Executors, spec.CallHandlers)
	in, err := imported(auth.ImportAPIKey, secret, "key", "api-key")
	if err = errors.Join(r.Add(err), r.Add(a.exist(ctx, id.Tenant, "body.spec.", scope, nil))); err == nil {
		err = r.Err()
	}
	return domain.APIKey{
		ID: a.deps.NewID(), TenantID: id.Tenant, Name: name, Prefix: in.Prefix, Hash: in.Hash, Role: role, Scope: scope, CreatedBy: id.Actor(), CreatedAt: a.deps.Now(),
		ExpiresAt: instantOf(spec.ExpiresAt),
	}, err
}

func (a *api) findAPIKey(ctx context.Context, _ auth.Identity, k domain.APIKey) (there bool, left, err error) {
	old, err := a.deps.Store.FindAPIKeyByHash(ctx, k.Hash)
	switch {
	case domain.Is(err, domain.CodeNotFound):
		return false, nil, nil
	case err != nil:
		return false, nil, err
	case old.TenantID != k.TenantID:
		left = domain.Errorf(domain.CodeConflict, "its secret is that of another tenant's key: make another secret")
	case !old.RevokedAt.IsZero():
		left = domain.Errorf(domain.CodeConflict, "it was revoked: make another secret")
	case old.Role != k.Role || !old.Scope.Contains(k.Scope) || !k.Scope.Contains(old.Scope):
		left = domain.Errorf(domain.CodeConflict, "the key that has this secret has other rights, and rights of keys do not change: make another secret")
	}
	return true, left, nil
}

// account is an account that is about to be made.
type account struct {
	user     domain.User
	password string
	places   []domain.Membership
}

func (a *api) readAccount(ctx context.Context, _ auth.Identity, name string, spec *UserSettings, password string) (account, error) {
	out := account{password: password, user: domain.User{
		Username: name, PlatformAdmin: spec.PlatformAdmin, MustChangePassword: spec.MustChangePassword, SessionVersion: 1, CreatedAt: a.deps.Now(),
	}}
	first := name == auth.FirstUser
	switch {
	case !domain.UserNames.MatchString(name):
		return out, domain.Invalid("body.name", "must be lower-case letters, digits and . _ @ + -, beginning with a letter or digit")
	case first && (len(spec.Memberships) > 0 || spec.PlatformAdmin || spec.MustChangePassword):
		return out, domain.Invalid("body.spec", "must be empty: %s is the first administrator, and gets its password only", name)
	case !first && len(spec.Memberships) == 0 && !spec.PlatformAdmin:
		return out, domain.Invalid("body.spec", "the account belongs to no tenant: name some as memberships, each with a role")
	}
	if err := auth.CheckPassword("body.secrets.password", name, password); err != nil {
		return out, err
	}
	seen := map[string]bool{}
	for i, m := range spec.Memberships {
		at := fmt.Sprintf("body.spec.memberships[%d].", i)
		t, err := a.deps.Store.FindTenantByName(ctx, m.Tenant)
		if domain.Is(err, domain.CodeNotFound) {
			err = domain.Invalid(at+"tenant", "there is no tenant %q: add its document, kind: Tenant", m.Tenant)
		}
		if err == nil && seen[m.Tenant] {
			err = domain.Invalid(at+"tenant", "the account has a role in %q already", m.Tenant)
		}
		if err != nil {
			return out, err
		}
		seen[m.Tenant] = true
		scope, err := readScope(at, domain.Role(m.Role), m.Executors)
		if err != nil {
			return out, err
		}
		out.places = append(out.places, domain.Membership{TenantID: t.ID, Role: domain.Role(m.Role), Scope: scope})
	}
	return out, nil
}

func (a *api) findAccount(ctx context.Context, _ auth.Identity, t account) (there bool, left, err error) {
	_, err = a.deps.Store.FindUserByName(ctx, t.user.Username)
	if domain.Is(err, domain.CodeNotFound) {
		return false, nil, nil
	}
	return err == nil, nil, err
}

func (a *api) makeAccount(ctx context.Context, _ auth.Identity, t account) (err error) {
	t.user.ID = domain.UserID(a.deps.NewID())
	if t.user.PasswordHash, err = a.deps.Auth.HashPassword(ctx, 0, t.password); err != nil {
		return err
	}
	return a.deps.Store.CreateUser(ctx, t.user, t.places...)
}
