package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// account makes a user of a tenant of its own.
func (f *fixture) account(name string) (domain.User, domain.Membership) {
	f.t.Helper()
	tenant := domain.Tenant{ID: domain.TenantID(ids.Next()), CreatedAt: time.UnixMilli(1800000000001).UTC()}
	tenant.Name = "of " + name + " " + tenant.ID.String()
	f.ok(f.s.CreateTenant(f.ctx, tenant))
	u := domain.User{ID: domain.UserID(ids.Next()), Username: name + " " + f.tenant.String(), PasswordHash: "h", SessionVersion: 1, CreatedAt: time.UnixMilli(1800000000001).UTC()}
	m := domain.Membership{TenantID: tenant.ID, UserID: u.ID, Role: domain.RoleEditor}
	f.ok(f.s.CreateUser(f.ctx, u, m))
	return u, m
}

func (f *fixture) invite(name string, ttl time.Duration, most int) (domain.Invitation, error) {
	return f.s.CreateInvitation(f.ctx, store.CreateInvitationParams{
		Invitation: domain.Invitation{ID: domain.InvitationID(ids.Next()), TenantID: f.tenant, Username: name, Role: domain.RoleOperator, InvitedBy: "anna", Inviter: 7},
		TTL:        ttl, Most: most,
	})
}

func testInvitations(t *testing.T, f *fixture) {
	u, home := f.account("bob")
	made, err := f.invite(u.Username, time.Hour, 2)
	f.ok(err)
	require.WithinDuration(t, f.now().Add(time.Hour), made.ExpiresAt, time.Minute)
	_, err = f.invite(u.Username, time.Hour, 2)
	f.code(domain.CodeConflict, err) // already
	nobody, err := f.invite("nobody "+f.tenant.String(), time.Hour, 2)
	f.ok(err)
	_, err = f.invite("too many", time.Hour, 2)
	f.code(domain.CodeConflict, err)
	list, err := f.s.ListInvitations(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, []domain.Invitation{made, nobody}, list)
	list, err = f.s.ListInvitations(f.ctx, home.TenantID)
	f.ok(err)
	require.Empty(t, list)
	list, err = f.s.ListInvitationsOf(f.ctx, u.ID)
	f.ok(err)
	require.Equal(t, []domain.Invitation{made}, list)
	list, err = f.s.ListInvitationsOf(f.ctx, 0)
	f.ok(err)
	require.Empty(t, list)

	// Of those who answer at once, one is heard.
	f.code(domain.CodeNotFound, f.s.AcceptInvitation(f.ctx, u.ID, nobody.ID))
	var accepted atomic.Int32
	race(4, func(int) {
		if err := f.s.AcceptInvitation(f.ctx, u.ID, made.ID); err == nil {
			accepted.Add(1)
		}
	})
	require.EqualValues(t, 1, accepted.Load())
	memberships, err := f.s.ListMemberships(f.ctx, u.ID)
	f.ok(err)
	require.ElementsMatch(t, []domain.Membership{home, {TenantID: f.tenant, UserID: u.ID, Role: domain.RoleOperator}}, memberships)
	_, err = f.invite(u.Username, time.Hour, 2)
	f.code(domain.CodeConflict, err) // a member

	f.code(domain.CodeNotFound, f.s.DeleteInvitation(f.ctx, home.TenantID, nobody.ID))
	f.ok(f.s.DeleteInvitation(f.ctx, f.tenant, nobody.ID))
	other, _ := f.account("eve")
	declined, err := f.invite(other.Username, time.Hour, 2)
	f.ok(err)
	f.code(domain.CodeNotFound, f.s.DeclineInvitation(f.ctx, u.ID, declined.ID))
	f.ok(f.s.DeclineInvitation(f.ctx, other.ID, declined.ID))
	f.code(domain.CodeNotFound, f.s.AcceptInvitation(f.ctx, other.ID, declined.ID))
	list, err = f.s.ListInvitations(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, []domain.Invitation{declined}, list)

	// What has expired is not there, and makes room.
	late, _ := f.account("kim")
	expired, err := f.invite(late.Username, -time.Second, 2)
	f.ok(err)
	f.code(domain.CodeNotFound, f.s.AcceptInvitation(f.ctx, late.ID, expired.ID))
	list, err = f.s.ListInvitationsOf(f.ctx, late.ID)
	f.ok(err)
	require.Empty(t, list)
	_, err = f.invite(late.Username, time.Hour, 2)
	f.ok(err)
}

// testAccountsOfSeveralTenants: what one tenant may do to an account is decided
// where it is done, also while its owner joins another one.
func testAccountsOfSeveralTenants(t *testing.T, f *fixture) {
	u, home := f.account("zoe")
	change := u
	change.PasswordHash = "taken"
	i, err := f.invite(u.Username, time.Hour, 2)
	f.ok(err)
	f.ok(f.s.UpdateUser(f.ctx, u, home.TenantID))
	errs := make([]error, 2)
	race(2, func(n int) {
		if n == 0 {
			errs[0] = f.s.AcceptInvitation(f.ctx, u.ID, i.ID)
		} else {
			errs[1] = f.s.UpdateUser(f.ctx, change, home.TenantID)
		}
	})
	f.ok(errs[0])
	if errs[1] != nil { // it came second
		f.code(domain.CodeDenied, errs[1])
	}
	f.code(domain.CodeDenied, f.s.UpdateUser(f.ctx, change, home.TenantID))
	f.code(domain.CodeDenied, f.s.UpdateUser(f.ctx, change, f.tenant))
	f.ok(f.s.UpdateUser(f.ctx, u, 0))

	// Taken out of one tenant the account lives on in the other, out of all it is locked.
	f.ok(f.s.DeleteMembership(f.ctx, home.TenantID, u.ID))
	found, err := f.s.FindUser(f.ctx, u.ID)
	f.ok(err)
	require.False(t, found.Disabled)
	f.ok(f.s.UpdateUser(f.ctx, u, f.tenant))
	f.ok(f.s.DeleteMembership(f.ctx, f.tenant, u.ID))
	found, err = f.s.FindUser(f.ctx, u.ID)
	f.ok(err)
	require.True(t, found.Disabled)
	require.Greater(t, found.SessionVersion, u.SessionVersion)
}
