package api

import (
	"context"
	"net/http"

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
		ID: domain.UserID(t.ID).String(), Name: t.Name, Prefix: t.Prefix, CreatedAt: instant(t.CreatedAt),
		CreatedBy: t.CreatedBy, ExpiresAt: instantOrNull(t.ExpiresAt), Uses: t.Uses, DeclareJobs: !t.NoJobs,
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

func (a *API) registerJoinTokens() {
	register(a, may(domain.PermAdmin), operation{
		method: http.MethodGet, path: base + "/executors/{id}/join-tokens", id: "list-join-tokens", tag: "access",
		summary:     "List an executor's join tokens",
		description: "Tokens that are not revoked. Secrets are not shown again.",
	}, a.listJoinTokens)
	register(a, may(domain.PermAdmin), operation{
		method: http.MethodPost, path: base + "/executors/{id}/join-tokens", id: "create-join-token", tag: "access",
		summary:     "Make a join token",
		description: "The answer holds the secret, with which a process registers at this executor. It is shown only now.", status: http.StatusCreated,
	}, a.createJoinToken)
	register(a, may(domain.PermAdmin), operation{
		method: http.MethodDelete, path: base + "/executors/{id}/join-tokens/{tokenId}", id: "revoke-join-token", tag: "access",
		summary: "Revoke a join token", description: "Instances that are connected stay until their session ends.",
		status: http.StatusNoContent,
	}, a.revokeJoinToken)
}

func (a *API) listJoinTokens(ctx context.Context, id auth.Identity, in *idPageInput) (*pageOutput[JoinToken], error) {
	e, err := a.executor(ctx, id, in.ID)
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
	return slicePage(items, in.ShortPage, "join-tokens")
}

func (a *API) createJoinToken(ctx context.Context, id auth.Identity, in *createJoinTokenInput) (*struct{ Body CreatedJoinToken }, error) {
	e, err := a.executor(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	var r reader
	expires := a.futureInstant(&r, "body.expiresAt", in.Body.ExpiresAt)
	name := e.Name
	if in.Body.Name != "" {
		name = r.name("body.name", in.Body.Name, domain.MaxNameLength)
	}
	if err := r.err(); err != nil {
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

func (a *API) revokeJoinToken(ctx context.Context, id auth.Identity, in *joinTokenIDInput) (*struct{}, error) {
	e, err := a.executor(ctx, id, in.ID)
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
