package access

import (
	"context"
	"net/http"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Invitation is what a tenant sees of an account that it has invited: the same,
// whether the account exists or not, and whether its owner has declined or not.
type Invitation struct {
	ID        string   `json:"id" doc:"Of the invitation, a decimal string"`
	Username  string   `json:"username" doc:"Name of the account"`
	Role      string   `json:"role" enum:"viewer,operator,editor,scripter,admin" doc:"What the account may do in the tenant once its owner has accepted"`
	Executors []string `json:"executors" doc:"Names of the executors that the role is bound to; empty: the whole tenant"`
	InvitedBy string   `json:"invitedBy" doc:"Who has invited"`
	CreatedAt string   `json:"createdAt" format:"date-time" doc:"When"`
	ExpiresAt string   `json:"expiresAt" format:"date-time" doc:"After it the invitation is gone, 7 days after it was made"`
}

// TenantRef names a tenant.
type TenantRef struct {
	ID   string `json:"id" doc:"Id of the tenant, a decimal string"`
	Name string `json:"name" doc:"Its name"`
}

// MyInvitation is what the account's owner sees of it.
type MyInvitation struct {
	ID        string    `json:"id" doc:"Of the invitation, a decimal string"`
	Tenant    TenantRef `json:"tenant" doc:"The one that invites"`
	Role      string    `json:"role" enum:"viewer,operator,editor,scripter,admin" doc:"What the account may do in the tenant once its owner has accepted"`
	Executors []string  `json:"executors" doc:"Names of the executors that the role is bound to; empty: the whole tenant"`
	InvitedBy string    `json:"invitedBy" doc:"Who has invited"`
	CreatedAt string    `json:"createdAt" format:"date-time" doc:"When"`
	ExpiresAt string    `json:"expiresAt" format:"date-time" doc:"After it the invitation is gone, 7 days after it was made"`
}

type createInvitationInput struct {
	Body struct {
		Username  string   `json:"username" minLength:"1" maxLength:"64" doc:"Name of the account, which need not exist"`
		Role      string   `json:"role" enum:"viewer,operator,editor,scripter,admin" doc:"What the account may do in the tenant once its owner has accepted"`
		Executors []string `json:"executors,omitempty" maxItems:"30" doc:"Names of the executors that the role is bound to: the user then sees only their jobs and runs. Default: the whole tenant. Refused with the roles scripter and admin"`
	}
}

func invitationOf(i *domain.Invitation) Invitation {
	return Invitation{
		ID: i.ID.String(), Username: i.Username, Role: string(i.Role), Executors: web.EmptyIfNil(i.Scope.Executors), InvitedBy: i.InvitedBy,
		CreatedAt: web.Instant(i.CreatedAt), ExpiresAt: web.Instant(i.ExpiresAt),
	}
}

func (a *api) registerInvitations() {
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/invitations", ID: "list-invitations", Tag: "access",
		Summary: "List the open invitations of the tenant", Description: "A declined one stays until it expires.",
	}, func(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[Invitation], error) {
		list, err := a.deps.Store.ListInvitations(ctx, id.Tenant)
		return web.ListPage(list, err, invitationOf, in.ShortPage, "invitations")
	})
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/invitations", ID: "create-invitation", Tag: "access",
		Summary: "Invite an account of another tenant",
		Description: "Nothing changes until the account's owner accepts, within 7 days. The answer is the same when there is no such account. " +
			"403 for API keys: an invitation ends with the rights of the account that sent it. " +
			"409 when the name is a member or invited already, or when 100 invitations are open.",
		Status: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, a.createInvitation)
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/invitations/{id}", ID: "delete-invitation", Tag: "access",
		Summary: "Take an invitation back", Description: "Its owner cannot accept it any more. Who has accepted stays a member.", Status: http.StatusNoContent,
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
		invitation, err := domain.ParseID[domain.InvitationID](in.ID)
		if err != nil {
			return nil, err
		}
		if err := a.deps.Store.DeleteInvitation(ctx, id.Tenant, invitation); err != nil {
			return nil, err
		}
		a.deps.Log.Info("invitation taken back", "invitation_id", invitation, "by", id)
		return nil, nil
	})
	a.registerMyInvitations()
}

func (a *api) createInvitation(ctx context.Context, id auth.Identity, in *createInvitationInput) (*struct{ Body Invitation }, error) {
	if id.Kind != auth.KindUser {
		return nil, errKeyInvites()
	}
	username := auth.NormalUsername(in.Body.Username)
	if !domain.UserNames.MatchString(username) {
		return nil, errUserName()
	}
	scope, err := readScope("body.", domain.Role(in.Body.Role), in.Body.Executors)
	if err == nil {
		err = a.exist(ctx, id.Tenant, "body.", scope, nil)
	}
	if err != nil {
		return nil, err
	}
	i, err := a.invite(ctx, id, domain.InvitationID(a.deps.NewID()), username, domain.Role(in.Body.Role), scope)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Invitation }{invitationOf(&i)}, nil
}

// errKeyInvites: an invitation ends with the rights of the account that sent it. That of a key
// would outlive the key.
func errKeyInvites() error {
	return domain.Errorf(domain.CodeDenied, "an API key cannot invite: sign in as an administrator of the tenant")
}

func (a *api) invite(ctx context.Context, id auth.Identity, invitation domain.InvitationID, username string, role domain.Role, scope domain.Scope) (domain.Invitation, error) {
	i, err := a.deps.Store.CreateInvitation(ctx, store.CreateInvitationParams{
		Invitation: domain.Invitation{
			ID: invitation, TenantID: id.Tenant, Username: username, Role: role, Scope: scope, InvitedBy: id.Actor(), Inviter: id.Account(),
		},
		TTL: domain.InvitationTTL, Most: domain.MaxInvitations,
	})
	if err == nil {
		a.deps.Log.Info("account invited", "user", username, "role", i.Role, "executors", i.Scope.Executors, "invitation_id", i.ID, "by", id)
	}
	return i, err
}

func (a *api) registerMyInvitations() {
	web.Register(a.Server, web.AccountOwner, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/me/invitations", ID: "list-my-invitations", Tag: "session",
		Summary: "List the invitations that the own account has not answered", Description: "Of all tenants, the expired ones left out.",
	}, func(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[MyInvitation], error) {
		list, err := a.deps.Store.ListInvitationsOf(ctx, id.User)
		if err != nil {
			return nil, err
		}
		items := []MyInvitation{}
		for _, i := range list {
			t, err := a.deps.Store.FindTenant(ctx, i.TenantID)
			if err != nil {
				return nil, err
			}
			items = append(items, MyInvitation{
				ID: i.ID.String(), Tenant: TenantRef{ID: t.ID.String(), Name: t.Name}, Role: string(i.Role), Executors: web.EmptyIfNil(i.Scope.Executors), InvitedBy: i.InvitedBy,
				CreatedAt: web.Instant(i.CreatedAt), ExpiresAt: web.Instant(i.ExpiresAt),
			})
		}
		return web.SlicePage(items, in.ShortPage, "my-invitations")
	})
	web.Register(a.Server, web.AccountOwner, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/me/invitations/{id}/accept", ID: "accept-invitation", Tag: "session",
		Summary: "Become a member of the tenant", Description: "404 also when who has invited may not do so any more.",
		Status: http.StatusNoContent,
	}, a.acceptInvitation)
	web.Register(a.Server, web.AccountOwner, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/me/invitations/{id}/decline", ID: "decline-invitation", Tag: "session",
		Summary: "Decline an invitation", Description: "The tenant is not told.", Status: http.StatusNoContent,
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
		invitation, err := domain.ParseID[domain.InvitationID](in.ID)
		if err != nil {
			return nil, err
		}
		if err := a.deps.Store.DeclineInvitation(ctx, id.User, invitation); err != nil {
			return nil, err
		}
		a.deps.Log.Info("invitation declined", "invitation_id", invitation, "by", id)
		return nil, nil
	})
}

func (a *api) acceptInvitation(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
	invitation, err := domain.ParseID[domain.InvitationID](in.ID)
	if err != nil {
		return nil, err
	}
	mine, err := a.deps.Store.ListInvitationsOf(ctx, id.User)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(mine, func(i domain.Invitation) bool { return i.ID == invitation })
	if at < 0 {
		return nil, domain.Errorf(domain.CodeNotFound, "there is no invitation %s", invitation)
	}
	i := mine[at]
	// The role was offered by somebody who could give it then. Nobody's word
	// outlives his rights.
	if i.Inviter != 0 {
		ok, err := a.deps.Auth.MayAdminister(ctx, i.Inviter, i.TenantID)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, domain.Errorf(domain.CodeNotFound, "%s, who has sent this invitation, may not invite any more; ask for another one", i.InvitedBy)
		}
	}
	if err := a.deps.Store.AcceptInvitation(ctx, id.User, invitation); err != nil {
		return nil, err
	}
	a.deps.Auth.Forget(id.User)
	a.deps.Log.Info("invitation accepted", "invitation_id", invitation, "user", id.Name, "role", i.Role, "invited_by", i.InvitedBy, "joined_tenant_id", int64(i.TenantID))
	return nil, nil
}
