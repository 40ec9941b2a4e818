package auth

import (
	"fmt"
	"strings"

	"github.com/trustelem/zxcvbn"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

// Imported is a secret that was made elsewhere: what lists show of it, and what is
// stored.
type Imported struct {
	Prefix string
	Hash   [32]byte
}

// NewAPIKey returns a random secret for an API key, which nobody knows yet.
func NewAPIKey() (string, error) { return newSecret(APIKeyPrefix) }

// NewJoinToken is NewAPIKey for a join token.
func NewJoinToken() (string, error) { return newSecret(JoinTokenPrefix) }

// ImportAPIKey checks the secret of an API key as strictly as if this package had
// made it. The error does not show it.
func ImportAPIKey(secret string) (Imported, error) { return imported(APIKeyPrefix, secret) }

// ImportJoinToken is ImportAPIKey for a join token.
func ImportJoinToken(secret string) (Imported, error) { return imported(JoinTokenPrefix, secret) }

// What a secret has to be, so that chance is likely to have made it.
const (
	// leastDifferentInSecret is how many different characters it has. Of 43 random
	// ones with 64 to choose from 31 differ on average, and fewer than 16 do in one
	// of 10¹⁵.
	leastDifferentInSecret = 16
	// leastGuesses is zxcvbn's estimate. Of 1,500 random ones the least was 10⁴⁰; four
	// words of a dictionary and filling are 10³⁵, a row of the keyboard twice 10¹⁶.
	leastGuesses = 1e36
)

// imported refuses what has another form, and what was not made by chance: nothing
// but the hash guards it (hashSecret).
func imported(prefix, secret string) (Imported, error) {
	if !looksLike(secret, prefix) {
		return Imported{}, domain.Errorf(domain.CodeInvalid, "must be %q and %d letters, digits, - or _", prefix, secretLength)
	}
	body := secret[len(prefix):]
	different := map[rune]bool{}
	for _, r := range body {
		different[r] = true
	}
	if len(different) < leastDifferentInSecret || zxcvbn.PasswordStrength(body, nil).Guesses < leastGuesses {
		return Imported{}, domain.Errorf(domain.CodeInvalid, "is easily guessed: it has to be random")
	}
	return Imported{Prefix: secret[:len(prefix)+shownChars], Hash: hashSecret(secret)}, nil
}

// SecretKinds are what NewSecret makes.
func SecretKinds() []string { return []string{"password", "join-token", "api-key", "sealing-key"} }

// NewSecret makes a random secret of a kind of SecretKinds.
func NewSecret(kind string) (string, error) {
	random, known := map[string]func() (string, error){
		"password": GeneratePassword, "join-token": NewJoinToken, "api-key": NewAPIKey, "sealing-key": secret.NewKey,
	}[kind]
	if !known {
		return "", fmt.Errorf("%q is none of %s", kind, strings.Join(SecretKinds(), ", "))
	}
	return random()
}
