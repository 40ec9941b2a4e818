package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func b64(v any) string {
	raw, ok := v.([]byte)
	if !ok {
		raw, _ = json.Marshal(v)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// forge signs header and claims with key as they are, without any library's help.
func forge(header, claims map[string]any, key ed25519.PrivateKey) string {
	signed := b64(header) + "." + b64(claims)
	return signed + "." + b64(ed25519.Sign(key, []byte(signed)))
}

func TestForgedTokensAreRefused(t *testing.T) {
	s, m := withAdmin(t)
	session := login(t, s, "admin", adminPassword)
	own := s.signingKey()
	parts := strings.Split(session.AccessToken, ".")

	header := func(change map[string]any) map[string]any {
		h := map[string]any{"alg": "EdDSA", "typ": "JWT", "kid": own.id}
		for k, v := range change {
			h[k] = v
		}
		return h
	}
	body := func(change map[string]any) map[string]any {
		var c map[string]any
		raw, err := base64.RawURLEncoding.DecodeString(parts[1])
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &c))
		for k, v := range change {
			if v == nil {
				delete(c, k)
			} else {
				c[k] = v
			}
		}
		return c
	}
	strangerPublic, stranger, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	hs256 := func(key any, kid string) string {
		tok := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims(body(nil)))
		tok.Header["kid"] = kid
		out, err := tok.SignedString(key)
		require.NoError(t, err)
		return out
	}
	// A key under a name that is not its own: somebody could write the row.
	planted := domain.SigningKey{ID: "planted", PublicKey: strangerPublic, ExpiresAt: time.Now().Add(time.Hour)}
	require.NoError(t, m.SaveSigningKey(t.Context(), planted))

	t.Run("the forger itself works", func(t *testing.T) {
		_, err := s.Authenticate(t.Context(), forge(header(nil), body(nil), own.private), "")
		require.NoError(t, err, "otherwise the refusals below prove nothing")
	})
	public := []byte(own.public())
	tests := []struct{ name, token string }{
		{"empty", ""},
		{"not a token", "hello"},
		{"alg none", b64(map[string]any{"alg": "none", "typ": "JWT"}) + "." + parts[1] + "."},
		{"alg None", b64(header(map[string]any{"alg": "None"})) + "." + parts[1] + "." + parts[2]},
		{"alg none with the signature kept", b64(header(map[string]any{"alg": "none"})) + "." + parts[1] + "." + parts[2]},
		{"signature cut off", parts[0] + "." + parts[1] + "."},
		{"HS256 with the public key", hs256(public, own.id)},
		{"HS256 with the public key as text", hs256([]byte(base64.StdEncoding.EncodeToString(public)), own.id)},
		{"HS256 with an empty key", hs256([]byte{}, own.id)},
		{"alg says HS256, signed with Ed25519", forge(header(map[string]any{"alg": "HS256"}), body(nil), own.private)},
		{"signed by a stranger", forge(header(nil), body(nil), stranger)},
		{"stranger's own kid", forge(header(map[string]any{"kid": keyID(strangerPublic)}), body(nil), stranger)},
		{"kid planted in the store under another name", forge(header(map[string]any{"kid": "planted"}), body(nil), stranger)},
		{"kid is a path", forge(header(map[string]any{"kid": "../../../dev/null"}), body(nil), stranger)},
		{"kid is SQL", forge(header(map[string]any{"kid": "x' UNION SELECT 'y"}), body(nil), stranger)},
		{"kid is a number", forge(header(map[string]any{"kid": 1}), body(nil), own.private)},
		{"kid is empty", forge(header(map[string]any{"kid": ""}), body(nil), own.private)},
		{"kid is long", forge(header(map[string]any{"kid": strings.Repeat("a", 65)}), body(nil), own.private)},
		{"no kid", forge(map[string]any{"alg": "EdDSA", "typ": "JWT"}, body(nil), own.private)},
		{"brings a key: jwk", forge(header(map[string]any{"jwk": map[string]any{"kty": "OKP", "crv": "Ed25519", "x": b64([]byte(strangerPublic))}}), body(nil), stranger)},
		{"brings an address: jku", forge(header(map[string]any{"jku": "https://evil.example/keys"}), body(nil), own.private)},
		{"crit", forge(header(map[string]any{"crit": []string{"exp"}}), body(nil), own.private)},
		{"another typ", forge(header(map[string]any{"typ": "at+jwt"}), body(nil), own.private)},
		{"claims changed, signature kept", parts[0] + "." + b64(body(map[string]any{"sub": "1"})) + "." + parts[2]},
		{"another issuer", forge(header(nil), body(map[string]any{"iss": "carillon/other"}), own.private)},
		{"another audience", forge(header(nil), body(map[string]any{"aud": "elsewhere"}), own.private)},
		{"no expiry", forge(header(nil), body(map[string]any{"exp": nil}), own.private)},
		{"no not-before", forge(header(nil), body(map[string]any{"nbf": nil}), own.private)},
		{"not valid yet", forge(header(nil), body(map[string]any{"nbf": time.Now().Add(time.Minute).Unix()}), own.private)},
		{"expired, and of another issuer", forge(header(nil), body(map[string]any{"exp": 1, "iss": "x"}), own.private)},
		{"no subject", forge(header(nil), body(map[string]any{"sub": nil}), own.private)},
		{"subject is no id", forge(header(nil), body(map[string]any{"sub": "admin"}), own.private)},
		{"unknown user", forge(header(nil), body(map[string]any{"sub": "999"}), own.private)},
		{"tenant is no id", forge(header(nil), body(map[string]any{"tid": "default"}), own.private)},
		{"older session version", forge(header(nil), body(map[string]any{"sv": 0}), own.private)},
		{"newer session version", forge(header(nil), body(map[string]any{"sv": 2}), own.private)},
		{"long", forge(header(nil), body(map[string]any{"pad": strings.Repeat("a", maxToken)}), own.private)},
		{"only dots", strings.Repeat(".", 1<<20)},
		{"padding in base64", parts[0] + "=." + parts[1] + "." + parts[2]},
		{"line break in base64", parts[0] + "\n." + parts[1] + "." + parts[2]},
		{"API key of the wrong form", "ck_short"},
		{"unknown API key", "ck_" + strings.Repeat("a", 43)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, err := s.Authenticate(t.Context(), tt.token, "")
			require.True(t, domain.Is(err, domain.CodeUnauthenticated), "%v", err)
			require.False(t, id.Known())
		})
	}
	t.Run("genuine but expired", func(t *testing.T) {
		_, err := s.Authenticate(t.Context(), forge(header(nil), body(map[string]any{"exp": time.Now().Unix() - 1}), own.private), "")
		require.True(t, domain.Is(err, domain.CodeTokenExpired), "%v", err)
	})
	t.Run("expired and signed by a stranger", func(t *testing.T) {
		_, err := s.Authenticate(t.Context(), forge(header(nil), body(map[string]any{"exp": 1}), stranger), "")
		require.True(t, domain.Is(err, domain.CodeUnauthenticated), "a forger learns nothing about times: %v", err)
	})
}

func TestTokenLivesTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withAdmin(t)
		session := login(t, s, "admin", adminPassword)
		require.Less(t, len(session.AccessToken), 1024)
		time.Sleep(AccessTTL - 2*time.Second)
		_, err := s.Authenticate(t.Context(), session.AccessToken, "")
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		_, err = s.Authenticate(t.Context(), session.AccessToken, "")
		require.True(t, domain.Is(err, domain.CodeTokenExpired), "%v", err)
	})
}

func TestEveryNodeAcceptsTheTokensOfEveryOther(t *testing.T) {
	m := newMemory()
	a := node(t, m)
	_, err := a.EnsureFirstAdmin(t.Context(), adminPassword)
	require.NoError(t, err)
	b := node(t, m) // a does not know b's key yet
	require.NotEqual(t, a.signingKey().id, b.signingKey().id)
	for name, pair := range map[string][2]*Service{"signed by a": {a, b}, "signed by b": {b, a}} {
		t.Run(name, func(t *testing.T) {
			session := login(t, pair[0], "admin", adminPassword)
			id, err := pair[1].Authenticate(t.Context(), session.AccessToken, "")
			require.NoError(t, err)
			require.Equal(t, "admin", id.Name)
		})
	}
}

func TestTokensOfAnotherClusterAreRefused(t *testing.T) {
	s, m := withAdmin(t)
	other, om := withAdmin(t)
	// Even when a signing key was copied from one to the other.
	k := other.signingKey()
	require.NoError(t, s.keys.publish(t.Context(), k, time.Now()))
	var user domain.User
	for _, u := range m.users {
		user = u
	}
	om.users = map[domain.UserID]domain.User{user.ID: user}
	token, _, err := other.issue(user, m.tenants[0].ID, 0, time.Now())
	require.NoError(t, err)
	_, err = s.Authenticate(t.Context(), token, "")
	require.True(t, domain.Is(err, domain.CodeUnauthenticated), "%v", err)
}

func TestUnknownKeysCauseFewReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := withAdmin(t)
		_, stranger, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		before := m.lists
		for range 1000 {
			token := forge(map[string]any{"alg": "EdDSA", "typ": "JWT", "kid": rand.Text()}, map[string]any{}, stranger)
			_, err := s.Authenticate(t.Context(), token, "")
			require.True(t, domain.Is(err, domain.CodeUnauthenticated))
			time.Sleep(time.Millisecond)
		}
		require.LessOrEqual(t, m.lists-before, 5)
	})
}

func TestSilentStoreIsNotTheTokensFault(t *testing.T) {
	s, m := withAdmin(t)
	stranger := node(t, m)
	session := login(t, stranger, "admin", adminPassword)
	m.fault = domain.Errorf(domain.CodeUnavailable, "the database does not answer")
	_, err := s.Authenticate(t.Context(), session.AccessToken, "")
	require.True(t, domain.Is(err, domain.CodeUnavailable), "a login page would not help: %v", err)
	m.fault = errors.New("disk on fire")
	_, err = s.Authenticate(t.Context(), session.AccessToken, "")
	require.Equal(t, domain.CodeInternal, domain.CodeOf(err))
}

func TestSigningKeyFile(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	first, err := loadSigningKey(dir, now)
	require.NoError(t, err)
	path := filepath.Join(dir, SigningKeyFile)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	again, err := loadSigningKey(dir, now.Add(keyLifetime-time.Minute))
	require.NoError(t, err)
	require.Equal(t, first.id, again.id)
	require.Equal(t, first.private, again.private)

	old, err := loadSigningKey(dir, now.Add(keyLifetime+time.Minute))
	require.NoError(t, err)
	require.NotEqual(t, first.id, old.id, "an old key is replaced")

	require.NoError(t, os.Chmod(path, 0o644))
	_, err = loadSigningKey(dir, now)
	require.ErrorContains(t, err, "chmod 600")

	require.NoError(t, os.WriteFile(path, []byte("garbage"), 0o600))
	require.NoError(t, os.Chmod(path, 0o600))
	_, err = loadSigningKey(dir, now)
	require.ErrorContains(t, err, "remove it")
}

func TestKeyRotationKeepsOldTokensValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withAdmin(t)
		done := make(chan error, 1)
		ctx, cancel := cancelled(t)
		go func() { done <- s.Run(ctx) }()
		first := s.signingKey().id
		time.Sleep(keyLifetime - time.Minute)
		session := login(t, s, "admin", adminPassword)
		require.Equal(t, first, s.signingKey().id)
		time.Sleep(2 * time.Minute) // the hourly turn falls into this
		require.NotEqual(t, first, s.signingKey().id)
		_, err := s.Authenticate(t.Context(), session.AccessToken, "")
		require.NoError(t, err)
		cancel()
		require.NoError(t, <-done)
	})
}
