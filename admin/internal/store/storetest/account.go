package storetest

import (
	"crypto/sha256"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Eight nodes start on an empty database: one makes the first user.
func testFirstUser(t *testing.T, s Store) {
	ctx := t.Context()
	var created atomic.Int32
	race(8, func(i int) {
		u := domain.User{ID: domain.UserID(ids.Next()), Username: "admin", PasswordHash: "x", PlatformAdmin: true, MustChangePassword: true}
		ok, err := s.CreateFirstUser(ctx, domain.Tenant{ID: domain.TenantID(ids.Next()), Name: "default"}, u, domain.RoleAdmin)
		if err != nil {
			t.Errorf("create: %v", err)
		}
		if ok {
			created.Add(1)
		}
	})
	require.EqualValues(t, 1, created.Load())
	u, err := s.FindUserByName(ctx, "admin")
	require.NoError(t, err)
	require.True(t, u.PlatformAdmin)
	tenant, err := s.FindTenantByName(ctx, "default")
	require.NoError(t, err)
	members, err := s.ListMembers(ctx, tenant.ID)
	require.NoError(t, err)
	require.Equal(t, []store.Member{{User: u, Role: domain.RoleAdmin}}, members)
}

func testTenants(t *testing.T, f *fixture) {
	made := domain.Tenant{ID: domain.TenantID(ids.Next()), Name: "Acme " + f.tenant.String(), CreatedAt: time.UnixMilli(1800000000001).UTC()}
	f.ok(f.s.CreateTenant(f.ctx, made))
	made.State, made.Version = domain.TenantEnabled, 1
	double := made
	double.ID = domain.TenantID(ids.Next())
	f.code(domain.CodeConflict, f.s.CreateTenant(f.ctx, double))
	found, err := f.s.FindTenant(f.ctx, made.ID)
	f.ok(err)
	require.Equal(t, made, found)
	found, err = f.s.FindTenantByName(f.ctx, made.Name)
	f.ok(err)
	require.Equal(t, made, found)
	_, err = f.s.FindTenant(f.ctx, 1)
	f.code(domain.CodeNotFound, err)
	all, err := f.s.ListTenants(f.ctx)
	f.ok(err)
	require.Contains(t, all, made)
}

func testUsers(t *testing.T, f *fixture) {
	u := domain.User{ID: domain.UserID(ids.Next()), Username: "anna " + f.tenant.String(), PasswordHash: "h", CreatedAt: time.UnixMilli(1800000000001).UTC()}
	f.ok(f.s.CreateUser(f.ctx, u, domain.Membership{TenantID: f.tenant, UserID: u.ID, Role: domain.RoleEditor}))
	double := u
	double.ID = domain.UserID(ids.Next())
	f.code(domain.CodeConflict, f.s.CreateUser(f.ctx, double, domain.Membership{TenantID: f.tenant, Role: domain.RoleViewer}))
	members, err := f.s.ListMembers(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, []store.Member{{User: u, Role: domain.RoleEditor}}, members)

	root := domain.User{ID: domain.UserID(ids.Next()), Username: "root " + f.tenant.String(), PasswordHash: "h", PlatformAdmin: true}
	f.ok(f.s.CreateUser(f.ctx, root))
	places, err := f.s.ListMemberships(f.ctx, root.ID)
	f.ok(err)
	require.Empty(t, places)
	both, other := domain.User{ID: domain.UserID(ids.Next()), Username: "both " + f.tenant.String(), PasswordHash: "h"}, newFixture(t, f.s).tenant
	want := []domain.Membership{{TenantID: f.tenant, UserID: both.ID, Role: domain.RoleViewer, Scope: domain.Scope{Executors: []string{"shop"}}}, {TenantID: other, UserID: both.ID, Role: domain.RoleAdmin}}
	f.ok(f.s.CreateUser(f.ctx, both, want[1], want[0]))
	places, err = f.s.ListMemberships(f.ctx, both.ID)
	f.ok(err)
	require.ElementsMatch(t, want, places)
	f.ok(f.s.DeleteMembership(f.ctx, f.tenant, both.ID))

	f.ok(f.s.SaveMembership(f.ctx, domain.Membership{TenantID: f.tenant, UserID: u.ID, Role: domain.RoleAdmin}))
	memberships, err := f.s.ListMemberships(f.ctx, u.ID)
	f.ok(err)
	require.Equal(t, []domain.Membership{{TenantID: f.tenant, UserID: u.ID, Role: domain.RoleAdmin}}, memberships)

	u.PasswordHash, u.Disabled, u.SessionVersion, u.MustChangePassword, u.PlatformAdmin = "h2", true, 7, true, true
	f.ok(f.s.UpdateUser(f.ctx, u, 0))
	f.ok(f.s.UpdateUser(f.ctx, u, 0)) // nothing changed, still found
	found, err := f.s.FindUser(f.ctx, u.ID)
	f.ok(err)
	require.Equal(t, u, found)
	f.code(domain.CodeNotFound, f.s.UpdateUser(f.ctx, domain.User{ID: 1}, 0))
	_, err = f.s.FindUserByName(f.ctx, "nobody")
	f.code(domain.CodeNotFound, err)

	f.ok(f.s.DeleteMembership(f.ctx, f.tenant, u.ID))
	f.code(domain.CodeNotFound, f.s.DeleteMembership(f.ctx, f.tenant, u.ID))
}

func hash(f *fixture, name string) [32]byte {
	return sha256.Sum256([]byte(f.tenant.String() + name))
}

func testRefreshTokens(t *testing.T, f *fixture) {
	family := ids.Next()
	make := func(name string, expires time.Time) domain.RefreshToken {
		r := domain.RefreshToken{Hash: hash(f, name), Family: family, UserID: 5, TenantID: f.tenant, SessionVersion: 2, ExpiresAt: expires.UTC().Truncate(time.Millisecond)}
		f.ok(f.s.CreateRefreshToken(f.ctx, r))
		return r
	}
	soon := f.now().Add(time.Hour)
	first := make("first", soon)
	got, err := f.s.UseRefreshToken(f.ctx, first.Hash, 0)
	f.ok(err)
	require.False(t, got.UsedAt.IsZero())
	got.UsedAt = time.Time{}
	require.Equal(t, first, got)
	second, expired := make("second", soon), make("expired", f.now().Add(-time.Second))
	_, err = f.s.UseRefreshToken(f.ctx, expired.Hash, 0)
	f.code(domain.CodeTokenExpired, err)
	_, err = f.s.UseRefreshToken(f.ctx, hash(f, "unknown"), 0)
	f.code(domain.CodeUnauthenticated, err)
	got, err = f.s.UseRefreshToken(f.ctx, first.Hash, time.Hour)
	f.ok(err)
	require.Equal(t, family, got.Family, "a second use right after the first one")
	_, err = f.s.UseRefreshToken(f.ctx, first.Hash, 0)
	f.code(domain.CodeUnauthenticated, err)
	_, err = f.s.UseRefreshToken(f.ctx, first.Hash, time.Hour)
	f.code(domain.CodeUnauthenticated, err)
	_, err = f.s.UseRefreshToken(f.ctx, second.Hash, 0)
	f.code(domain.CodeUnauthenticated, err) // the family is revoked
	ended := func() bool {
		over, err := f.s.RefreshFamilyEnded(f.ctx, family)
		f.ok(err)
		return over
	}
	require.True(t, ended())

	family = ids.Next()
	require.False(t, ended())
	third := make("third", soon)
	var used atomic.Int32
	race(4, func(int) {
		if _, err := f.s.UseRefreshToken(f.ctx, third.Hash, 0); err == nil {
			used.Add(1)
		}
	})
	require.EqualValues(t, 1, used.Load(), "used once")
	family = ids.Next()
	fourth := make("fourth", soon)
	require.False(t, ended())
	f.ok(f.s.RevokeRefreshFamily(f.ctx, family))
	require.True(t, ended())
	_, err = f.s.UseRefreshToken(f.ctx, fourth.Hash, 0)
	f.code(domain.CodeUnauthenticated, err)
}

func testAPIKeys(t *testing.T, f *fixture) {
	moment := time.UnixMilli(1800000000001).UTC()
	k := domain.APIKey{
		ID: ids.Next(), TenantID: f.tenant, Name: "ci", Prefix: "ck_ab", Hash: hash(f, "key"), Role: domain.RoleOperator, CreatedBy: "anna", Owner: 17, CreatedAt: moment, ExpiresAt: moment,
		Scope: domain.Scope{Executors: []string{"shop", "bank"}, Handlers: []string{"shop/a,b", "mail/send/now"}},
	}
	f.ok(f.s.CreateAPIKey(f.ctx, k))
	found, err := f.s.FindAPIKeyByHash(f.ctx, k.Hash)
	f.ok(err)
	require.Equal(t, k, found)
	_, err = f.s.FindAPIKeyByHash(f.ctx, hash(f, "none"))
	f.code(domain.CodeNotFound, err)
	f.ok(f.s.TouchAPIKeys(f.ctx, map[int64]time.Time{k.ID: moment, 1: moment}))
	f.ok(f.s.TouchAPIKeys(f.ctx, map[int64]time.Time{k.ID: moment.Add(-time.Hour)}))
	f.ok(f.s.RevokeAPIKey(f.ctx, f.tenant, k.ID))
	f.ok(f.s.RevokeAPIKey(f.ctx, f.tenant, k.ID))
	f.code(domain.CodeNotFound, f.s.RevokeAPIKey(f.ctx, f.tenant, 1))
	all, err := f.s.ListAPIKeys(f.ctx, f.tenant)
	f.ok(err)
	require.Len(t, all, 1)
	require.Equal(t, moment, all[0].LastUsedAt)
	require.False(t, all[0].RevokedAt.IsZero())
}

// testKeysOfMembers: who leaves a tenant takes his keys there along.
func testKeysOfMembers(t *testing.T, f *fixture) {
	other := domain.TenantID(ids.Next())
	f.ok(f.s.CreateTenant(f.ctx, domain.Tenant{ID: other, Name: "tenant " + other.String(), CreatedAt: time.Now()}))
	u := domain.User{ID: domain.UserID(ids.Next()), SessionVersion: 1}
	u.Username = "user " + u.ID.String()
	f.ok(f.s.CreateUser(f.ctx, u, domain.Membership{TenantID: f.tenant, Role: domain.RoleAdmin}))
	f.ok(f.s.SaveMembership(f.ctx, domain.Membership{TenantID: other, UserID: u.ID, Role: domain.RoleAdmin}))
	key := func(tenant domain.TenantID, owner domain.UserID) [32]byte {
		id := ids.Next()
		k := domain.APIKey{ID: id, TenantID: tenant, Owner: owner, Hash: hash(f, number(id)), Role: domain.RoleViewer, CreatedAt: time.Now()}
		f.ok(f.s.CreateAPIKey(f.ctx, k))
		return k.Hash
	}
	mine, elsewhere, nobodys := key(f.tenant, u.ID), key(other, u.ID), key(f.tenant, 0)
	f.ok(f.s.DeleteMembership(f.ctx, f.tenant, u.ID))
	for h, revoked := range map[[32]byte]bool{mine: true, elsewhere: false, nobodys: false} {
		k, err := f.s.FindAPIKeyByHash(f.ctx, h)
		f.ok(err)
		require.Equal(t, revoked, !k.RevokedAt.IsZero())
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func testJoinTokens(t *testing.T, f *fixture) {
	make := func(name string, uses int, expires time.Time) domain.JoinToken {
		j := domain.JoinToken{
			ID: ids.Next(), TenantID: f.tenant, Executor: f.executor, Name: name, Prefix: "cjt_", Hash: hash(f, name), CreatedBy: "anna",
			CreatedAt: time.UnixMilli(1800000000001).UTC(), ExpiresAt: expires, MaxUses: uses,
		}
		f.ok(f.s.CreateJoinToken(f.ctx, j))
		return j
	}
	use := func(j domain.JoinToken, boot string) error {
		return useTokens(f, store.JoinTokenUse{Hash: j.Hash, BootID: boot})[0].Err
	}
	two := make("two", 2, time.Time{})
	found, err := f.s.FindJoinTokenByHash(f.ctx, two.Hash)
	f.ok(err)
	require.Equal(t, two, found)
	_, err = f.s.FindJoinTokenByHash(f.ctx, hash(f, "unknown"))
	f.code(domain.CodeNotFound, err)
	double := two
	double.ID = ids.Next()
	f.code(domain.CodeConflict, f.s.CreateJoinToken(f.ctx, double))
	got := useTokens(f, store.JoinTokenUse{Hash: two.Hash, BootID: "a"})[0]
	f.ok(got.Err)
	require.Equal(t, 1, got.Token.Uses)
	require.Equal(t, f.executor, got.Token.Executor)
	require.Equal(t, "shop", got.Executor)
	f.ok(use(two, "a"))
	f.ok(use(two, "b"))
	f.code(domain.CodeUnauthenticated, use(two, "c"))
	f.ok(use(two, "a")) // a boot that was let in comes back
	f.code(domain.CodeTokenExpired, use(make("old", 0, f.now().Add(-time.Second)), "a"))
	f.code(domain.CodeUnauthenticated, use(domain.JoinToken{Hash: hash(f, "none")}, "a"))
	all, err := f.s.ListJoinTokens(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Len(t, all, 2)
	require.Equal(t, 2, all[0].Uses)
	f.ok(f.s.RevokeJoinToken(f.ctx, f.tenant, two.ID))
	f.code(domain.CodeUnauthenticated, use(two, "a"))
	f.code(domain.CodeNotFound, f.s.RevokeJoinToken(f.ctx, f.tenant, 1))

	last := make("race", 3, time.Time{})
	var in atomic.Int32
	race(6, func(i int) {
		if use(last, string(rune('a'+i))) == nil {
			in.Add(1)
		}
	})
	require.EqualValues(t, 3, in.Load())
	f.code(domain.CodeNotFound, f.s.CreateJoinToken(f.ctx, domain.JoinToken{ID: ids.Next(), TenantID: f.tenant, Executor: 1, Hash: hash(f, "x")}))
}

func useTokens(f *fixture, list ...store.JoinTokenUse) []store.UsedJoinToken {
	out, err := f.s.UseJoinTokens(f.ctx, list)
	f.ok(err)
	return out
}

// testJoinTokensTogether: thousands come at once after a node's restart, and
// with them who has no business there.
func testJoinTokensTogether(t *testing.T, f *fixture) {
	b := newFixture(t, f.s)
	token := func(of *fixture, name string, uses int, expires time.Time) domain.JoinToken {
		j := domain.JoinToken{
			ID: ids.Next(), TenantID: of.tenant, Executor: of.executor, Name: name, Prefix: "cjt_", Hash: hash(of, name), CreatedBy: "anna",
			CreatedAt: time.UnixMilli(1800000000001).UTC(), ExpiresAt: expires, MaxUses: uses,
		}
		f.ok(f.s.CreateJoinToken(f.ctx, j))
		return j
	}
	three, foreign, old := token(f, "three", 3, time.Time{}), token(b, "foreign", 0, time.Time{}), token(f, "old", 0, f.now().Add(-time.Second))
	f.ok(useTokens(f, store.JoinTokenUse{Hash: three.Hash, BootID: "known"})[0].Err)
	list := []store.JoinTokenUse{
		{Hash: three.Hash, BootID: "first"}, {Hash: hash(f, "none"), BootID: "first"}, {Hash: three.Hash, BootID: "known"},
		{Hash: foreign.Hash, BootID: "first"}, {Hash: old.Hash, BootID: "first"}, {Hash: three.Hash, BootID: "first"},
		{Hash: three.Hash, BootID: "second"}, {Hash: three.Hash, BootID: "third"}, {Hash: foreign.Hash, BootID: "second"},
	}
	want := []domain.Code{"", domain.CodeUnauthenticated, "", "", domain.CodeTokenExpired, "", "", domain.CodeUnauthenticated, ""}
	for range 2 { // the second time all are known who came in
		out := useTokens(f, list...)
		for i, u := range out {
			if want[i] == "" {
				f.ok(u.Err)
				require.Equal(t, map[int64]domain.TenantID{three.ID: f.tenant, foreign.ID: b.tenant}[u.Token.ID], u.Token.TenantID)
				require.Equal(t, list[i].Hash, u.Token.Hash)
				require.NotEmpty(t, u.Executor)
			} else {
				f.code(want[i], u.Err)
				require.Zero(t, u.Token)
			}
		}
	}
	all, err := f.s.ListJoinTokens(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Equal(t, []int{3, 0}, []int{all[0].Uses, all[1].Uses})
	all, err = b.s.ListJoinTokens(b.ctx, b.tenant, b.executor)
	f.ok(err)
	require.Equal(t, 2, all[0].Uses)

	// The last uses are given away once, whoever comes together with whom.
	last := token(f, "last", 5, time.Time{})
	var in atomic.Int32
	race(4, func(n int) {
		var list []store.JoinTokenUse
		for i := range 4 {
			list = append(list, store.JoinTokenUse{Hash: last.Hash, BootID: string(rune('a'+n)) + string(rune('a'+i))})
		}
		out, err := f.s.UseJoinTokens(f.ctx, list)
		if err != nil {
			t.Errorf("use tokens: %v", err)
		}
		for _, u := range out {
			if u.Err == nil {
				in.Add(1)
			}
		}
	})
	require.EqualValues(t, 5, in.Load())
}
