package auth

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestAPIKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := withAdmin(t)
		by := login(t, s, "admin", adminPassword).Identity
		key, secret, err := s.CreateAPIKey(t.Context(), by, "deploy", domain.RoleOperator, time.Now().Add(time.Hour), domain.Scope{})
		require.NoError(t, err)
		require.True(t, looksLike(secret, "ck_"))
		require.True(t, strings.HasPrefix(secret, key.Prefix))
		require.Len(t, key.Prefix, 9)
		for hash := range m.apiKeys {
			require.NotContains(t, secret, string(hash[:]))
		}

		id, err := s.Authenticate(t.Context(), secret, "192.0.2.1")
		require.NoError(t, err)
		require.Equal(t, KindAPIKey, id.Kind)
		require.Equal(t, "key:deploy", id.Actor())
		require.True(t, id.May(domain.PermOperate))
		require.False(t, id.May(domain.PermEdit))

		// Its use is written down.
		require.NoError(t, s.flushTouched(t.Context()))
		require.True(t, time.Now().Equal(m.touched[key.ID]))

		// What cannot be written now is written later.
		time.Sleep(time.Second)
		_, err = s.Authenticate(t.Context(), secret, "192.0.2.1")
		require.NoError(t, err)
		m.fault = domain.Errorf(domain.CodeUnavailable, "down")
		require.Error(t, s.flushTouched(t.Context()))
		m.fault = nil
		require.NoError(t, s.flushTouched(t.Context()))
		require.True(t, time.Now().Equal(m.touched[key.ID]))

		time.Sleep(time.Hour)
		_, err = s.Authenticate(t.Context(), secret, "192.0.2.1")
		require.True(t, domain.Is(err, domain.CodeTokenExpired), "%v", err)
	})
}

func TestRevokedAPIKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := withAdmin(t)
		elsewhere := node(t, m)
		by := login(t, s, "admin", adminPassword).Identity
		key, secret, err := s.CreateAPIKey(t.Context(), by, "deploy", domain.RoleViewer, time.Time{}, domain.Scope{})
		require.NoError(t, err)
		for _, n := range []*Service{s, elsewhere} {
			_, err = n.Authenticate(t.Context(), secret, "")
			require.NoError(t, err)
		}
		require.True(t, domain.Is(s.RevokeAPIKey(t.Context(), by.Tenant+1, key.ID), domain.CodeNotFound), "not by another tenant")
		require.NoError(t, s.RevokeAPIKey(t.Context(), by.Tenant, key.ID))
		_, err = s.Authenticate(t.Context(), secret, "")
		require.True(t, domain.Is(err, domain.CodeUnauthenticated), "at once here")
		time.Sleep(5 * time.Second)
		_, err = elsewhere.Authenticate(t.Context(), secret, "")
		require.True(t, domain.Is(err, domain.CodeUnauthenticated), "within 5 s elsewhere")
	})
}

// TestAPIKeysAreTheirOwners: a key does no more than the account that it belongs
// to, also one made by a key, and nothing once that has gone.
func TestAPIKeysAreTheirOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := withAdmin(t)
		vera := domain.User{ID: 77, Username: "vera", SessionVersion: 1}
		m.users[vera.ID] = vera
		tenant := login(t, s, "admin", adminPassword).Identity.Tenant
		m.memberships = append(m.memberships, domain.Membership{TenantID: tenant, UserID: vera.ID, Role: domain.RoleAdmin})
		role := func(r domain.Role) {
			m.memberships[len(m.memberships)-1].Role = r
			time.Sleep(5 * time.Second)
		}
		by := account{user: vera, role: domain.RoleAdmin}.identity(tenant)
		_, first, err := s.CreateAPIKey(t.Context(), by, "first", domain.RoleAdmin, time.Time{}, domain.Scope{})
		require.NoError(t, err)
		firstKey, err := s.Authenticate(t.Context(), first, "")
		require.NoError(t, err)
		require.Equal(t, vera.ID, firstKey.Account())
		_, second, err := s.CreateAPIKey(t.Context(), firstKey, "second", domain.RoleEditor, time.Time{}, domain.Scope{})
		require.NoError(t, err)
		secrets := []string{first, second}

		role(domain.RoleOperator)
		for _, secret := range secrets {
			id, err := s.Authenticate(t.Context(), secret, "")
			require.NoError(t, err)
			require.True(t, id.May(domain.PermOperate))
			require.False(t, id.May(domain.PermEdit))
		}
		refused := func(why string) {
			t.Helper()
			time.Sleep(5 * time.Second)
			for _, secret := range secrets {
				_, err := s.Authenticate(t.Context(), secret, "")
				require.True(t, domain.Is(err, domain.CodeUnauthenticated), "%s: %v", why, err)
			}
		}
		vera.Disabled = true
		m.users[vera.ID] = vera
		refused("locked")
		vera.Disabled = false
		m.users[vera.ID] = vera
		role(domain.RoleAdmin)
		_, err = s.Authenticate(t.Context(), second, "")
		require.NoError(t, err, "unlocked")
		m.memberships = m.memberships[:len(m.memberships)-1]
		refused("has left")
	})
}

func TestAPIKeyHasNoMoreRightsThanItsMaker(t *testing.T) {
	s, _ := withAdmin(t)
	by := Identity{Kind: KindUser, Tenant: 1, Role: domain.RoleOperator, Permissions: domain.RoleOperator.Permissions()}
	for _, role := range []domain.Role{domain.RoleEditor, domain.RoleAdmin, "root", ""} {
		_, _, err := s.CreateAPIKey(t.Context(), by, "k", role, time.Time{}, domain.Scope{})
		require.True(t, domain.Is(err, domain.CodeDenied), "%q", role)
	}
	_, _, err := s.CreateAPIKey(t.Context(), by, "k", domain.RoleOperator, time.Time{}, domain.Scope{})
	require.NoError(t, err)
}

// TestUnknownAPIKeysAreNobodyElsesLoss: a flood of keys that nobody made, also
// from the address of one that is valid, which this node has not seen before.
func TestUnknownAPIKeysAreNobodyElsesLoss(t *testing.T) {
	s, m := withAdmin(t)
	by := login(t, s, "admin", adminPassword).Identity
	_, secret, err := s.CreateAPIKey(t.Context(), by, "deploy", domain.RoleViewer, time.Time{}, domain.Scope{})
	require.NoError(t, err)
	for range 1000 {
		_, err := s.Authenticate(t.Context(), "ck_"+strings.Repeat("x", 43), "192.0.2.1")
		require.True(t, domain.Is(err, domain.CodeUnauthenticated), "%v", err)
	}
	_, err = s.Authenticate(t.Context(), secret, "192.0.2.1")
	require.NoError(t, err)

	// While the database is slow and all places are taken, a key that the node
	// has seen still works.
	synctest.Test(t, func(t *testing.T) {
		s := node(t, m)
		_, err = s.Authenticate(t.Context(), secret, "192.0.2.1")
		require.NoError(t, err)
		time.Sleep(2 * stateTTL)
		for range lookupSlots {
			_, err := s.keyGate.enter(t.Context(), "slow")
			require.NoError(t, err)
		}
		ctx, cancel := cancelled(t)
		for range 2 * lookupPlaces {
			go func() { _, _ = s.Authenticate(ctx, "ck_"+strings.Repeat("y", 43), "192.0.2.1") }()
		}
		synctest.Wait()
		require.Equal(t, lookupPlaces, s.keyGate.waiting, "bounded")
		_, err = s.Authenticate(t.Context(), secret, "192.0.2.1")
		require.NoError(t, err)
		cancel()
	})
}

func TestVerifyJoinToken(t *testing.T) {
	s, m := withAdmin(t)
	by := login(t, s, "admin", adminPassword).Identity
	m.executors[5] = domain.Executor{ID: 5, TenantID: by.Tenant, Name: "shop"}
	token, secret, err := s.CreateJoinToken(t.Context(), by, JoinTokenParams{Executor: 5, Name: "prod", MaxUses: 3})
	require.NoError(t, err)
	require.True(t, looksLike(secret, "cjt_"))
	require.Equal(t, secret[:10], token.Prefix)

	good := domain.JoinClaim{Secret: secret, BootID: "boot-1", Executor: "shop"}
	got, err := s.VerifyJoinTokens(t.Context(), []domain.JoinClaim{good})
	require.NoError(t, err)
	require.Equal(t, []domain.JoinVerdict{{Tenant: by.Tenant, Executor: 5}}, got)

	m.executors[6] = domain.Executor{ID: 6, TenantID: by.Tenant + 1, Name: "foreign"}
	_, orphan, err := s.CreateJoinToken(t.Context(), by, JoinTokenParams{Executor: 6})
	require.NoError(t, err)
	tests := []struct {
		name, secret, executor string
		code                   domain.Code
	}{
		{"another executor's name", secret, "billing", domain.CodeDenied},
		{"empty", "", "shop", domain.CodeUnauthenticated},
		{"wrong", secret[:len(secret)-1] + "!", "shop", domain.CodeUnauthenticated},
		{"unknown", "cjt_" + strings.Repeat("a", 43), "shop", domain.CodeUnauthenticated},
		{"an API key", "ck_" + strings.Repeat("a", 43), "shop", domain.CodeUnauthenticated},
		{"executor of another tenant", orphan, "foreign", domain.CodeUnauthenticated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad := domain.JoinClaim{Secret: tt.secret, BootID: "boot-1", Executor: tt.executor}
			got, err := s.VerifyJoinTokens(t.Context(), []domain.JoinClaim{good, bad, good})
			require.NoError(t, err)
			require.True(t, domain.Is(got[1].Err, tt.code), "%v", got[1].Err)
			require.Zero(t, got[1].Tenant)
			require.Zero(t, got[1].Executor)
			require.Equal(t, domain.JoinVerdict{Tenant: by.Tenant, Executor: 5}, got[0], "who comes along")
			require.Equal(t, got[0], got[2])
		})
	}
	m.fault = errors.New("no database")
	_, err = s.VerifyJoinTokens(t.Context(), []domain.JoinClaim{good})
	require.ErrorIs(t, err, m.fault)
}

// TestImportedSecrets: what somebody brings has the form and the strength of what
// is made here.
func TestImportedSecrets(t *testing.T) {
	for range 50 {
		secret, err := NewAPIKey()
		require.NoError(t, err)
		got, err := ImportAPIKey(secret)
		require.NoError(t, err, "a random one is always taken")
		require.Equal(t, Imported{secret[:9], hashSecret(secret)}, got)
	}
	token, err := NewJoinToken()
	require.NoError(t, err)
	_, err = ImportJoinToken(token)
	require.NoError(t, err)
	body := token[len("cjt_"):]
	for name, secret := range map[string]string{
		"a key as a token":         "ck_" + body,
		"too short":                token[:len(token)-1],
		"too long":                 token + "a",
		"another alphabet":         "cjt_" + body[1:] + "+",
		"one character":            "cjt_" + strings.Repeat("a", 43),
		"few characters":           "cjt_" + strings.Repeat("0123456789abcd_", 3)[:43],
		"the alphabet":             "cjt_abcdefghijklmnopqrstuvwxyzabcdefghijklmnopq",
		"rows of the keyboard":     "cjt_qwertyuiopasdfghjklzxcvbnmqwertyuiopasdfghj",
		"words":                    "cjt_correct-horse-battery-staple-and-a-few-word",
		"a placeholder":            "cjt_change-me-please-this-is-only-an-example-12",
		"a short one, and filling": "cjt_Correct-horse7" + strings.Repeat("a", 29),
		"empty":                    "",
	} {
		_, err := ImportJoinToken(secret)
		require.True(t, domain.Is(err, domain.CodeInvalid), name)
		if secret != "" {
			require.NotContains(t, err.Error(), secret)
		}
	}
}

func TestNewSecretsAreDifferent(t *testing.T) {
	t.Parallel()
	for _, kind := range SecretKinds() {
		one, err := NewSecret(kind)
		require.NoError(t, err)
		two, err := NewSecret(kind)
		require.NoError(t, err)
		require.NotEqual(t, one, two, kind)
		require.GreaterOrEqual(t, len(one), 20, kind)
	}
	_, err := NewSecret("spoon")
	require.ErrorContains(t, err, `"spoon" is none of password, join-token, api-key, sealing-key`)
}
