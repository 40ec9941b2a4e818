package auth

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestPasswordHash(t *testing.T) {
	h := newHasher()
	phc, err := h.hash(t.Context(), "", "correct horse battery")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(phc, "$argon2id$v=19$m=19456,t=2,p=1$"), phc)

	ok, err := h.verify(phc, "correct horse battery")
	require.NoError(t, err)
	require.True(t, ok)
	ok, err = h.verify(phc, "correct horse batterz")
	require.NoError(t, err)
	require.False(t, ok)

	again, err := h.hash(t.Context(), "", "correct horse battery")
	require.NoError(t, err)
	require.NotEqual(t, phc, again, "each hash has a salt of its own")
}

func TestVerifyKnowsTheReferenceVector(t *testing.T) {
	// Made by the reference implementation:
	// echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1 -l 32
	const phc = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	ok, err := newHasher().verify(phc, "password")
	require.NoError(t, err)
	require.True(t, ok)
}

func TestVerifyRefusesOtherHashes(t *testing.T) {
	h := newHasher()
	for name, phc := range map[string]string{
		"empty":           "",
		"bcrypt":          "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
		"argon2i":         "$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA",
		"old version":     "$argon2id$v=16$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"too much memory": "$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"too many passes": "$argon2id$v=19$m=19456,t=9999,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"no threads":      "$argon2id$v=19$m=19456,t=2,p=0$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"short hash":      "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFh",
		"broken base64":   "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$!!!!",
	} {
		t.Run(name, func(t *testing.T) {
			ok, err := h.verify(phc, "password")
			require.Error(t, err)
			require.False(t, ok)
		})
	}
}

func TestCheckPassword(t *testing.T) {
	tests := []struct {
		name, password string
		ok             bool
	}{
		{"long enough", "twelve chars", true},
		{"too short", "eleven char", false},
		{"characters, not bytes", "江天一色无纤尘皎皎空中月", true},
		{"few characters, repeated", "密码密码密码密码密码密码", false},
		{"few characters, mixed", "密码码密密码码密密密码码", false},
		{"one repeated, in words", "ффффффффффффффф1", false},
		{"an alphabet", "абвгдежзийклмноп", false},
		{"words of another alphabet", "ёлка медленно читает реку", true},
		{"a common one and an accent", "password1234é", false},
		{"a row of the keyboard and an umlaut", "qwertyuiop[]ü", false},
		{"words with accents", "straße château mañana", true},
		{"long", strings.Repeat("eat the moon, ", 15), true},
		{"a word and its digits", "password1234", false},
		{"a row of the keyboard", "qwertyuiop[]", false},
		{"the product and a year", "Carillon2026", false},
		{"the user name and a digit", "administrator7", false},
		{"a short one repeated", "letmeinletmein", false},
		{"short in characters", "密码密码密码密码", false},
		{"user name", "administrator", false},
		{"user name in capitals", "AdminiStrator", false},
		{"one character", "aaaaaaaaaaaaaaaa", false},
		{"too long", strings.Repeat("ab", 200), false},
		{"not UTF-8", "abcdefghijkl\xff", false},
		{"empty", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckPassword("body.new", "administrator", tt.password)
			require.Equal(t, tt.ok, err == nil, "%v", err)
			if err != nil {
				require.True(t, domain.Is(err, domain.CodeInvalid))
				require.NotContains(t, err.Error(), "密码")
			}
		})
	}
}

func TestGeneratePassword(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		p, err := GeneratePassword()
		require.NoError(t, err)
		require.Regexp(t, `^([a-zA-Z2-9]{5}-){3}[a-zA-Z2-9]{5}$`, p)
		require.NoError(t, CheckPassword("", "admin", p))
		require.False(t, seen[p])
		seen[p] = true
	}
}
