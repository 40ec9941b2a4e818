package auth

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func cancelled(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

func TestLoginGivesRoleAndTenant(t *testing.T) {
	s, m := withAdmin(t)
	addUser(t, s, m, "vera", "acme", domain.RoleViewer)
	session := login(t, s, " Vera ", "vera password")
	require.Equal(t, "acme", session.Tenant.Name)

	id, err := s.Authenticate(t.Context(), session.AccessToken, "")
	require.NoError(t, err)
	require.Equal(t, Identity{
		Kind: KindUser, Tenant: session.Tenant.ID, User: session.Identity.User, Name: "vera",
		Role: domain.RoleViewer, Permissions: domain.PermRead,
	}, id)
	require.True(t, id.May(domain.PermRead))
	require.False(t, id.May(domain.PermOperate))
	require.False(t, id.May(domain.PermRead|domain.PermEdit))
}

func TestLoginTellsNothingAboutUsers(t *testing.T) {
	s, m := withAdmin(t)
	gone := addUser(t, s, m, "gone", "acme", domain.RoleAdmin)
	gone.Disabled = true
	m.users[gone.ID] = gone

	texts := map[string]bool{}
	for _, tt := range []struct{ name, user, password string }{
		{"wrong password", "admin", "wrong"},
		{"unknown user", "nobody", "wrong"},
		{"disabled, right password", "gone", "gone password"},
		{"disabled, wrong password", "gone", "wrong"},
		{"very long password", "admin", strings.Repeat("x", 1<<20)},
	} {
		before := s.hasher.computed.Load()
		_, err := s.Login(t.Context(), LoginParams{Username: tt.user, Password: tt.password, Address: tt.name})
		// The hash is the work; without it an answer takes microseconds.
		require.Equal(t, before+1, s.hasher.computed.Load(), "%s: the same work for all", tt.name)
		require.True(t, domain.Is(err, domain.CodeUnauthenticated), "%s: %v", tt.name, err)
		texts[err.Error()] = true
	}
	require.Len(t, texts, 1, "one text for all of them")
}

func TestLoginIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withAdmin(t)
		try := func(password string) error {
			_, err := s.Login(t.Context(), LoginParams{Username: "ADMIN", Password: password, Address: "192.0.2.1"})
			return err
		}
		for range loginBurst {
			require.True(t, domain.Is(try("wrong"), domain.CodeUnauthenticated))
		}
		require.True(t, domain.Is(try(adminPassword), domain.CodeRateLimited), "also the right one has to wait")
		time.Sleep(loginRefill)
		require.NoError(t, try(adminPassword))
	})
}

func TestParallelGuessesAreLimitedToo(t *testing.T) {
	s, _ := withAdmin(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	count := map[domain.Code]int{}
	for range 500 {
		wg.Go(func() {
			_, err := s.Login(context.Background(), LoginParams{Username: "admin", Password: "wrong", Address: "192.0.2.1"})
			mu.Lock()
			defer mu.Unlock()
			count[domain.CodeOf(err)]++
		})
	}
	wg.Wait()
	require.LessOrEqual(t, count[domain.CodeUnauthenticated], loginBurst+2)
	require.GreaterOrEqual(t, count[domain.CodeRateLimited], 490)
}

func TestLoginChoosesTheTenant(t *testing.T) {
	s, m := withAdmin(t)
	u := addUser(t, s, m, "vera", "acme", domain.RoleViewer)
	addUser(t, s, m, "ed", "beta", domain.RoleEditor)
	m.memberships = append(m.memberships, domain.Membership{TenantID: m.tenants[2].ID, UserID: u.ID, Role: domain.RoleOperator})

	tests := []struct {
		name, user, tenant string
		want               string
		role               domain.Role
		code               domain.Code
	}{
		{"first one", "vera", "", "acme", domain.RoleViewer, ""},
		{"by name", "vera", "beta", "beta", domain.RoleOperator, ""},
		{"by id", "vera", m.tenants[2].ID.String(), "beta", domain.RoleOperator, ""},
		{"not a member", "ed", "acme", "", "", domain.CodeDenied},
		{"no such tenant", "ed", "nowhere", "", "", domain.CodeDenied},
		{"platform admin at home", "admin", "", "default", domain.RoleAdmin, ""},
		{"platform admin elsewhere", "admin", "beta", "beta", domain.RoleAdmin, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			password := tt.user + " password"
			if tt.user == "admin" {
				password = adminPassword
			}
			session, err := s.Login(t.Context(), LoginParams{Username: tt.user, Password: password, Tenant: tt.tenant})
			require.Equal(t, tt.code, domain.CodeOf(err), "%v", err)
			require.Equal(t, tt.want, session.Tenant.Name)
			require.Equal(t, tt.role, session.Identity.Role)
		})
	}
	t.Run("the texts do not tell which tenants exist", func(t *testing.T) {
		_, a := s.Login(t.Context(), LoginParams{Username: "ed", Password: "ed password", Tenant: "acme"})
		_, b := s.Login(t.Context(), LoginParams{Username: "ed", Password: "ed password", Tenant: "nowhere"})
		require.Equal(t, strings.ReplaceAll(a.Error(), "acme", "X"), strings.ReplaceAll(b.Error(), "nowhere", "X"))
	})
	t.Run("switch", func(t *testing.T) {
		session := login(t, s, "vera", "vera password")
		there, err := s.SwitchTenant(t.Context(), session.Identity, "beta")
		require.NoError(t, err)
		require.Equal(t, domain.RoleOperator, there.Identity.Role)
		_, err = s.SwitchTenant(t.Context(), session.Identity, "default")
		require.True(t, domain.Is(err, domain.CodeDenied))
		_, err = s.SwitchTenant(t.Context(), Identity{Kind: KindAPIKey, Tenant: session.Tenant.ID}, "beta")
		require.True(t, domain.Is(err, domain.CodeDenied))
	})
}

func TestRefreshRotates(t *testing.T) {
	s, m := withAdmin(t)
	first := login(t, s, "admin", adminPassword)
	second, err := s.Refresh(t.Context(), first.RefreshToken, "192.0.2.1")
	require.NoError(t, err)
	require.NotEqual(t, first.RefreshToken, second.RefreshToken)
	third, err := s.Refresh(t.Context(), second.RefreshToken, "192.0.2.1")
	require.NoError(t, err)

	other := login(t, s, "admin", adminPassword)
	_, err = s.Refresh(t.Context(), first.RefreshToken, "192.0.2.1")
	require.NoError(t, err, "another tab, at the same moment")
	m.age(first.RefreshToken, refreshGrace)
	_, err = s.Refresh(t.Context(), first.RefreshToken, "192.0.2.1")
	require.True(t, domain.Is(err, domain.CodeUnauthenticated), "a used token")
	_, err = s.Refresh(t.Context(), third.RefreshToken, "192.0.2.1")
	require.True(t, domain.Is(err, domain.CodeUnauthenticated), "its whole family is revoked")
	_, err = s.Refresh(t.Context(), other.RefreshToken, "192.0.2.1")
	require.NoError(t, err, "another login is not")
	for _, bad := range []string{"", "x", strings.Repeat("a", 43), strings.Repeat("a", 1<<20)} {
		_, err = s.Refresh(t.Context(), bad, "192.0.2.1")
		require.True(t, domain.Is(err, domain.CodeUnauthenticated))
	}
}

// TestLogoutEndsAccess: what was copied from the page ends with the log-out, and
// other sessions of the account do not.
func TestLogoutEndsAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := withAdmin(t)
		elsewhere := node(t, m)
		first, second := login(t, s, "admin", adminPassword), login(t, s, "admin", adminPassword)
		renewed, err := s.Refresh(t.Context(), first.RefreshToken, "192.0.2.1")
		require.NoError(t, err)
		refused := func(n *Service) {
			t.Helper()
			for _, token := range []string{first.AccessToken, renewed.AccessToken} {
				_, err := n.Authenticate(t.Context(), token, "")
				require.True(t, domain.Is(err, domain.CodeUnauthenticated), "%v", err)
			}
			_, err := n.Authenticate(t.Context(), second.AccessToken, "")
			require.NoError(t, err)
		}
		for _, n := range []*Service{s, elsewhere} {
			_, err := n.Authenticate(t.Context(), first.AccessToken, "")
			require.NoError(t, err)
		}
		require.NoError(t, s.Logout(t.Context(), renewed.RefreshToken, "192.0.2.1"))
		refused(s) // at once
		time.Sleep(5 * time.Second)
		refused(elsewhere)
		refused(s)
	})
}

func TestLogoutEndsTheSession(t *testing.T) {
	s, _ := withAdmin(t)
	session := login(t, s, "admin", adminPassword)
	require.NoError(t, s.Logout(t.Context(), session.RefreshToken, "192.0.2.1"))
	_, err := s.Refresh(t.Context(), session.RefreshToken, "192.0.2.1")
	require.True(t, domain.Is(err, domain.CodeUnauthenticated))
	require.NoError(t, s.Logout(t.Context(), session.RefreshToken, "192.0.2.1"), "twice is no error")
	require.NoError(t, s.Logout(t.Context(), "", "192.0.2.1"))
}

func TestRefreshTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withAdmin(t)
		session := login(t, s, "admin", adminPassword)
		time.Sleep(RefreshTTL + time.Second)
		_, err := s.Refresh(t.Context(), session.RefreshToken, "192.0.2.1")
		require.True(t, domain.Is(err, domain.CodeUnauthenticated))
	})
}

func TestPasswordChangeEndsAllSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := withAdmin(t)
		elsewhere := node(t, m)
		old := login(t, s, "admin", adminPassword)
		_, err := elsewhere.Authenticate(t.Context(), old.AccessToken, "")
		require.NoError(t, err) // now it is in the other node's cache

		fresh, err := s.ChangePassword(t.Context(), old.Identity, adminPassword, "a new password", "192.0.2.1")
		require.NoError(t, err)
		_, err = s.Authenticate(t.Context(), old.AccessToken, "")
		require.True(t, domain.Is(err, domain.CodeUnauthenticated), "at once here")
		_, err = s.Refresh(t.Context(), old.RefreshToken, "192.0.2.1")
		require.True(t, domain.Is(err, domain.CodeUnauthenticated))
		time.Sleep(5 * time.Second)
		_, err = elsewhere.Authenticate(t.Context(), old.AccessToken, "")
		require.True(t, domain.Is(err, domain.CodeUnauthenticated), "within 5 s elsewhere")

		_, err = elsewhere.Authenticate(t.Context(), fresh.AccessToken, "")
		require.NoError(t, err)
		_, err = s.Refresh(t.Context(), fresh.RefreshToken, "192.0.2.1")
		require.NoError(t, err)
		login(t, s, "admin", "a new password")
	})
}

func TestPasswordChangeRefusals(t *testing.T) {
	s, _ := withAdmin(t)
	session := login(t, s, "admin", adminPassword)
	tests := []struct{ name, current, next, location string }{
		{"wrong current", "wrong", "a new password", "body.current"},
		{"too short", adminPassword, "short", "body.new"},
		{"unchanged", adminPassword, adminPassword, "body.new"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.ChangePassword(t.Context(), session.Identity, tt.current, tt.next, "192.0.2.1")
			var e *domain.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, domain.CodeInvalid, e.Code)
			require.Equal(t, tt.location, e.Fields[0].Location)
		})
	}
	t.Run("guessing is limited", func(t *testing.T) {
		var limited bool
		for range 10 {
			_, err := s.ChangePassword(t.Context(), session.Identity, "wrong", "a new password", "192.0.2.1")
			limited = limited || domain.Is(err, domain.CodeRateLimited)
		}
		require.True(t, limited)
	})
	t.Run("not by an API key", func(t *testing.T) {
		_, err := s.ChangePassword(t.Context(), Identity{Kind: KindAPIKey}, "x", "a new password", "")
		require.True(t, domain.Is(err, domain.CodeDenied))
	})
}

func TestAccessEndsWithTheAccount(t *testing.T) {
	for name, end := range map[string]func(*memory, domain.User){
		"disabled": func(m *memory, u domain.User) {
			u.Disabled = true
			m.users[u.ID] = u
		},
		"deleted":             func(m *memory, u domain.User) { delete(m.users, u.ID) },
		"membership is gone":  func(m *memory, u domain.User) { m.memberships = m.memberships[:1] },
		"sessions were ended": func(m *memory, u domain.User) { u.SessionVersion++; m.users[u.ID] = u },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := withAdmin(t)
				u := addUser(t, s, m, "vera", "acme", domain.RoleViewer)
				session := login(t, s, "vera", "vera password")
				_, err := s.Authenticate(t.Context(), session.AccessToken, "")
				require.NoError(t, err)
				end(m, u)
				time.Sleep(5 * time.Second)
				_, err = s.Authenticate(t.Context(), session.AccessToken, "")
				require.True(t, domain.Is(err, domain.CodeUnauthenticated), "%v", err)
				_, err = s.Refresh(t.Context(), session.RefreshToken, "192.0.2.1")
				require.True(t, domain.Is(err, domain.CodeUnauthenticated), "%v", err)
			})
		})
	}
}

func TestFirstAdmin(t *testing.T) {
	t.Run("random password, to be changed", func(t *testing.T) {
		m := newMemory()
		s := node(t, m)
		first, err := s.EnsureFirstAdmin(t.Context(), "")
		require.NoError(t, err)
		require.True(t, first.Created)
		require.NotEmpty(t, first.Password)
		session := login(t, s, "admin", first.Password)
		require.True(t, session.Identity.MustChangePassword)
		require.True(t, session.Identity.PlatformAdmin)
		require.Equal(t, "default", session.Tenant.Name)

		fresh, err := s.ChangePassword(t.Context(), session.Identity, first.Password, "a new password", "")
		require.NoError(t, err)
		require.False(t, fresh.Identity.MustChangePassword)

		again, err := s.EnsureFirstAdmin(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, FirstAdmin{}, again)
	})
	t.Run("chosen password", func(t *testing.T) {
		s, _ := withAdmin(t)
		session := login(t, s, "admin", adminPassword)
		require.False(t, session.Identity.MustChangePassword)
	})
	t.Run("chosen but weak", func(t *testing.T) {
		_, err := node(t, newMemory()).EnsureFirstAdmin(t.Context(), "admin")
		require.True(t, domain.Is(err, domain.CodeInvalid))
	})
	t.Run("one of several nodes", func(t *testing.T) {
		m := newMemory()
		var created int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 4 {
			s := node(t, m)
			wg.Go(func() {
				first, err := s.EnsureFirstAdmin(context.Background(), "")
				mu.Lock()
				defer mu.Unlock()
				if err == nil && first.Created {
					created++
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, created)
	})
}
