package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const (
	audience = "carillon-api"
	// maxToken bounds what is parsed at all, in bytes.
	maxToken = 4096
	// maxKeyID bounds the key's name inside a token.
	maxKeyID = 64
	// notBeforeSlack is how far "not before" lies in the past: another node's
	// clock may be behind by that much.
	notBeforeSlack = 30 * time.Second
)

// claims is what an access token says. Rights are not in it: they are looked
// up, so that a change does not wait for the token's end.
type claims struct {
	jwt.RegisteredClaims
	Tenant         string `json:"tid"`
	SessionVersion int64  `json:"sv"`
	// Family is the log-in that the token comes from, which log-out ends.
	Family int64 `json:"fam,string"`
}

// issue signs an access token.
func (s *Service) issue(user domain.User, tenant domain.TenantID, family int64, now time.Time) (token string, expiresAt time.Time, err error) {
	key := s.signingKey()
	expiresAt = now.Add(AccessTTL).Truncate(time.Second)
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: s.issuer, Audience: jwt.ClaimStrings{audience}, Subject: user.ID.String(),
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-notBeforeSlack)),
			ExpiresAt: jwt.NewNumericDate(expiresAt),
		},
		Tenant: tenant.String(), SessionVersion: user.SessionVersion, Family: family,
	})
	t.Header["kid"] = key.id
	token, err = t.SignedString(key.private)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign access token: %w", err)
	}
	return token, expiresAt, nil
}

// verify checks an access token's signature and times. CodeTokenExpired only
// for a genuine token whose time is over; CodeUnauthenticated for everything
// else that is wrong with it.
func (s *Service) verify(ctx context.Context, token string) (claims, error) {
	if len(token) > maxToken {
		return claims{}, errBadToken()
	}
	var c claims
	now := time.Now()
	_, err := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
		jwt.WithIssuer(s.issuer), jwt.WithAudience(audience),
		jwt.WithExpirationRequired(), jwt.WithNotBeforeRequired(), jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(func() time.Time { return now }),
	).ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		id, err := headerKeyID(t.Header)
		if err != nil {
			return nil, err
		}
		key, err := s.keys.find(ctx, id, now)
		if err != nil && !domain.Is(err, domain.CodeUnauthenticated) {
			err = errors.Join(errKeyLookup, err)
		}
		return key, err
	})
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenInvalidIssuer) && !errors.Is(err, jwt.ErrTokenInvalidAudience):
		return claims{}, domain.Errorf(domain.CodeTokenExpired, "the access token has expired")
	case errors.Is(err, errKeyLookup):
		// The store did not answer. That must not send people to the login page.
		return claims{}, err
	default:
		return claims{}, errBadToken()
	}
}

var (
	errBadHeader = errors.New("token header: only alg, typ and kid are allowed")
	errKeyLookup = errors.New("look up signing key")
)

// headerKeyID returns the name of the key. A header with anything beyond alg,
// typ and kid is refused: jku, jwk, x5c and crit are ways to bring a key.
func headerKeyID(header map[string]any) (string, error) {
	for name := range header {
		if name != "alg" && name != "typ" && name != "kid" {
			return "", errBadHeader
		}
	}
	if typ, ok := header["typ"]; ok && typ != "JWT" {
		return "", errBadHeader
	}
	id, ok := header["kid"].(string)
	if !ok || id == "" || len(id) > maxKeyID || strings.ContainsFunc(id, notBase64URL) {
		return "", errBadHeader
	}
	return id, nil
}

func notBase64URL(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

func errBadToken() error {
	return domain.Errorf(domain.CodeUnauthenticated, "the access token is not valid")
}

// secretBytes is the strength of all tokens and keys: 256 bits.
const secretBytes = 32

// secretLength is how many characters that is, without the prefix.
var secretLength = base64.RawURLEncoding.EncodedLen(secretBytes)

// newSecret returns prefix and 256 random bits as 43 characters.
func newSecret(prefix string) (string, error) {
	raw := make([]byte, secretBytes)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("random secret: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(raw), nil
}

// hashSecret is what the store keeps. SHA-256 is enough for 256 random bits:
// there is nothing to guess.
func hashSecret(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// looksLike reports whether s has the form of a secret with this prefix.
func looksLike(s, prefix string) bool {
	return strings.HasPrefix(s, prefix) &&
		len(s) == len(prefix)+secretLength &&
		!strings.ContainsFunc(s[len(prefix):], notBase64URL)
}
