package access

import (
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// JoinToken lets instances of one executor register.
type JoinToken struct {
	ID          string  `json:"id" doc:"Id of the token, a decimal string"`
	Name        string  `json:"name" doc:"What it is for"`
	Prefix      string  `json:"prefix" doc:"The secret's first characters, to recognise it by"`
	CreatedAt   string  `json:"createdAt" format:"date-time" doc:"When it was made"`
	CreatedBy   string  `json:"createdBy" doc:"Who made it"`
	ExpiresAt   *string `json:"expiresAt" format:"date-time" doc:"null = never"`
	MaxUses     *int    `json:"maxUses" doc:"Processes that may register with it; null = no limit"`
	Uses        int     `json:"uses" doc:"Processes that have registered with it"`
	DeclareJobs bool    `json:"declareJobs" doc:"Applications that register with it may declare jobs in their code"`
}

// CreatedJoinToken is the only answer with the secret.
type CreatedJoinToken struct {
	JoinToken
	Secret string `json:"secret" doc:"Shown once; it cannot be read again"`
}

func joinTokenOf(t domain.JoinToken) JoinToken {
	out := JoinToken{
		ID: domain.UserID(t.ID).String(), Name: t.Name, Prefix: t.Prefix, CreatedAt: web.Instant(t.CreatedAt),
		CreatedBy: t.CreatedBy, ExpiresAt: web.InstantOrNull(t.ExpiresAt), Uses: t.Uses, DeclareJobs: !t.NoJobs,
	}
	if t.MaxUses > 0 {
		out.MaxUses = &t.MaxUses
	}
	return out
}

type createJoinTokenInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body struct {
		Name        string  `json:"name,omitempty" maxLength:"128" doc:"What it is for; default: the executor's name"`
		ExpiresAt   *string `json:"expiresAt,omitempty" format:"date-time" doc:"Default: never"`
		MaxUses     int     `json:"maxUses,omitempty" minimum:"0" maximum:"1000000" doc:"Default 0: no limit"`
		DeclareJobs *bool   `json:"declareJobs,omitempty" doc:"Default true; with false, handlers are registered, and jobs that the code declares are refused and told"`
	}
}

type joinTokenIDInput struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	TokenID string `path:"tokenId" doc:"Id of the join token"`
}

func (a *api) registerJoinTokens() {
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/executors/{id}/join-tokens", ID: "list-join-tokens", Tag: "access",
		Summary:     "List an executor's join tokens",
		Description: "Tokens that are not revoked. Secrets are not shown again.",
	}, a.listJoinTokens)
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/executors/{id}/join-tokens", ID: "create-join-token", Tag: "access",
		Summary:     "Make a join token",
		Description: "The answer holds the secret, with which a process registers at this executor. It is shown only now.", Status: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, a.createJoinToken)
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/executors/{id}/join-tokens/{tokenId}", ID: "revoke-join-token", Tag: "access",
		Summary: "Revoke a join token", Description: "Instances that are connected stay until their session ends.",
		Status: http.StatusNoContent,
	}, a.revokeJoinToken)
}

func (a *api) listJoinTokens(ctx context.Context, id auth.Identity, in *web.IDPage) (*web.PageOutput[JoinToken], error) {
	e, err := web.ByID(ctx, id.Tenant, in.ID, a.deps.Store.FindExecutor)
	if err != nil {
		return nil, err
	}
	tokens, err := a.deps.Store.ListJoinTokens(ctx, id.Tenant, e.ID)
	if err != nil {
		return nil, err
	}
	items := []JoinToken{}
	for _, t := range tokens {
		if t.RevokedAt.IsZero() {
			items = append(items, joinTokenOf(t))
		}
	}
	return web.SlicePage(items, in.ShortPage, "join-tokens")
}

func (a *api) createJoinToken(ctx context.Context, id auth.Identity, in *createJoinTokenInput) (*struct{ Body CreatedJoinToken }, error) {
	e, err := web.ByID(ctx, id.Tenant, in.ID, a.deps.Store.FindExecutor)
	if err != nil {
		return nil, err
	}
	var r web.Reader
	expires := r.Future("body.expiresAt", in.Body.ExpiresAt, a.deps.Now())
	name := e.Name
	if in.Body.Name != "" {
		name = r.Name("body.name", in.Body.Name, domain.MaxNameLength)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	t, secret, err := a.deps.Auth.CreateJoinToken(ctx, id, auth.JoinTokenParams{
		Executor: e.ID, Name: name, ExpiresAt: expires, MaxUses: in.Body.MaxUses, NoJobs: in.Body.DeclareJobs != nil && !*in.Body.DeclareJobs,
	})
	if err != nil {
		return nil, err
	}
	return &struct{ Body CreatedJoinToken }{CreatedJoinToken{JoinToken: joinTokenOf(t), Secret: secret}}, nil
}

func (a *api) revokeJoinToken(ctx context.Context, id auth.Identity, in *joinTokenIDInput) (*struct{}, error) {
	e, err := web.ByID(ctx, id.Tenant, in.ID, a.deps.Store.FindExecutor)
	if err != nil {
		return nil, err
	}
	want, err := domain.ParseID[domain.UserID](in.TokenID)
	if err != nil {
		return nil, err
	}
	tokens, err := a.deps.Store.ListJoinTokens(ctx, id.Tenant, e.ID)
	if err != nil {
		return nil, err
	}
	for _, t := range tokens {
		if t.ID == int64(want) { // a token of another executor is not below this address
			return nil, a.deps.Store.RevokeJoinToken(ctx, id.Tenant, t.ID)
		}
	}
	return nil, domain.Errorf(domain.CodeNotFound, "the executor has no join token with the id %q", in.TokenID)
}
