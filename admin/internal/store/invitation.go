package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Invitations let an account into another tenant with its owner's consent. All
// lists leave out what has expired; the oldest comes first.
type Invitations interface {
	// CreateInvitation invites the account of a name, until the time to live is
	// over, and returns the invitation. Whether there is such an account does
	// not show. CodeConflict: the name is a member, or invited already, or there
	// are as many open invitations as there may be.
	CreateInvitation(ctx context.Context, p CreateInvitationParams) (domain.Invitation, error)
	ListInvitations(ctx context.Context, tenant domain.TenantID) ([]domain.Invitation, error)
	// DeleteInvitation takes one back. CodeNotFound.
	DeleteInvitation(ctx context.Context, tenant domain.TenantID, id domain.InvitationID) error

	// ListInvitationsOf lists those that an account has not answered.
	ListInvitationsOf(ctx context.Context, user domain.UserID) ([]domain.Invitation, error)
	// AcceptInvitation makes the account a member; one that it is already keeps
	// its role. CodeNotFound: there is none for it, or it has expired.
	AcceptInvitation(ctx context.Context, user domain.UserID, id domain.InvitationID) error
	// DeclineInvitation hides it from the account. CodeNotFound.
	DeclineInvitation(ctx context.Context, user domain.UserID, id domain.InvitationID) error
}

// CreateInvitationParams describes an invitation; its account, its times and
// its answer are the store's.
type CreateInvitationParams struct {
	Invitation domain.Invitation
	TTL        time.Duration
	// Most is how many a tenant may have open.
	Most int
}
