package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/trustelem/zxcvbn"
	"golang.org/x/crypto/argon2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Cost of a password hash: argon2id with 19 MiB, two passes, one lane, the
// OWASP minimum; 19 ms on two cores of an AMD EPYC virtual machine.
const (
	argonMemory  = 19 * 1024 // KiB
	argonTime    = 2
	argonThreads = 1
	argonSalt    = 16
	argonKey     = 32
)

// Bounds of what a stored hash may ask for. A row that somebody wrote by hand
// must not take all memory.
const (
	maxArgonMemory = 256 * 1024 // KiB
	maxArgonTime   = 16
)

// Password lengths: characters at least, bytes at most.
const (
	MinPassword = 12
	MaxPassword = 256
)

const (
	// leastStrength is zxcvbn's "safely unguessable": 10⁸ guesses or more, with
	// common passwords, names, words, dates and rows of the keyboard tried first.
	leastStrength = 3
	// weighed is how many characters of a password are weighed: its estimate takes
	// time that grows faster than the length. What follows makes none weaker.
	weighed = 64
	// leastDifferent is how many different characters a password has at least that
	// holds one outside of ASCII: of those, zxcvbn knows no words.
	leastDifferent = 6
)

// hasher bounds how many hashes are computed at once (memory: 19 MiB each) and
// how many callers wait for that, in two gates: one for accounts at addresses
// from which they have logged in before, one for everybody else. What strangers
// ask for, however much of it and from however many addresses, does not delay
// those who are known. New passwords, which signed-in users choose, go with the
// known.
type hasher struct {
	known, strangers *gate
	// computed counts the hashes: the work that a login cost.
	computed atomic.Int64
}

// One hash at a time in each gate: 38 MiB, 50 hashes a second each.
const (
	hashSlots  = 1
	hashPlaces = 256
)

var errBadHash = errors.New("password hash: not a PHC string of argon2id")

func newHasher() *hasher {
	return &hasher{known: newGate(hashSlots, hashPlaces), strangers: newGate(hashSlots, hashPlaces)}
}

// hash returns the PHC string for a new password. who stands in the line of
// those who set passwords: a user or a tenant.
func (h *hasher) hash(ctx context.Context, who, password string) (string, error) {
	leave, err := h.known.enter(ctx, who)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	defer leave()
	salt := make([]byte, argonSalt)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("password salt: %w", err)
	}
	h.computed.Add(1)
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, argonKey)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key)), nil
}

// verify reports whether password belongs to the PHC string. The caller has
// entered one of the gates.
func (h *hasher) verify(phc, password string) (bool, error) {
	p, err := parsePHC(phc)
	if err != nil {
		return false, err
	}
	h.computed.Add(1)
	got := argon2.IDKey([]byte(password), p.salt, p.time, p.memory, p.threads, uint32(len(p.key)))
	return subtle.ConstantTimeCompare(got, p.key) == 1, nil
}

type phcParams struct {
	memory, time uint32
	threads      uint8
	salt, key    []byte
}

// parsePHC reads "$argon2id$v=19$m=19456,t=2,p=1$salt$hash".
func parsePHC(phc string) (phcParams, error) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return phcParams{}, errBadHash
	}
	var p phcParams
	var threads uint32
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &threads); n != 3 || err != nil {
		return phcParams{}, errBadHash
	}
	var saltErr, keyErr error
	p.salt, saltErr = base64.RawStdEncoding.DecodeString(parts[4])
	p.key, keyErr = base64.RawStdEncoding.DecodeString(parts[5])
	switch {
	case saltErr != nil, keyErr != nil, len(p.salt) < 8, len(p.salt) > 64, len(p.key) < 16, len(p.key) > 64,
		p.memory < 8 || p.memory > maxArgonMemory, p.time < 1 || p.time > maxArgonTime, threads < 1 || threads > 16:
		return phcParams{}, errBadHash
	}
	p.threads = uint8(threads)
	return p, nil
}

// CheckPassword tells what is wrong with a new password, as a field error at
// location.
func CheckPassword(location, username, password string) error {
	switch {
	case !utf8.ValidString(password):
		return domain.Invalid(location, "must be UTF-8")
	case utf8.RuneCountInString(password) < MinPassword:
		return domain.Invalid(location, "must have at least %d characters", MinPassword)
	case len(password) > MaxPassword:
		return domain.Invalid(location, "must have at most %d bytes", MaxPassword)
	case strings.EqualFold(password, username):
		return domain.Invalid(location, "must not be the user name")
	case strings.Count(password, password[:1]) == len(password):
		return domain.Invalid(location, "must not be one character repeated")
	case easy(username, password):
		return domain.Invalid(location, "is easily guessed: take some words that do not belong together, or random characters")
	}
	return nil
}

// easy reports whether a password is among the first that somebody would try.
func easy(username, password string) bool {
	different := map[rune]bool{}
	foreign := false
	for _, r := range password {
		different[r] = true
		foreign = foreign || r >= utf8.RuneSelf
	}
	if foreign && len(different) < leastDifferent {
		return true
	}
	weigh := []rune(password)
	weigh = weigh[:min(len(weigh), weighed)]
	return zxcvbn.PasswordStrength(oneByteEach(string(weigh)), []string{oneByteEach(username), "carillon"}).Score < leastStrength
}

// oneByteEach replaces characters outside of ASCII by control characters. zxcvbn
// looks for repeats and sequences byte by byte, and takes each byte of a longer
// character for one of its own. Neighbours in Unicode stay neighbours, and
// capitals become small letters; 20 control characters are enough for a pattern
// to show, and line feed, over which it sees none, is not among them.
func oneByteEach(text string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return r
		}
		return 0x0b + unicode.ToLower(r)%20
	}, text)
}

// passwordAlphabet leaves out characters that look alike; 55 of them.
const passwordAlphabet = "abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// GeneratePassword returns 20 random characters in groups of five, about 115
// bits, easy to read from a terminal.
func GeneratePassword() (string, error) {
	var b strings.Builder
	buf := make([]byte, 1)
	for n := 0; n < 20; {
		if _, err := rand.Read(buf); err != nil {
			return "", fmt.Errorf("random password: %w", err)
		}
		// Values beyond the last full multiple are thrown away: no bias.
		if int(buf[0]) >= 256/len(passwordAlphabet)*len(passwordAlphabet) {
			continue
		}
		if n > 0 && n%5 == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(passwordAlphabet[int(buf[0])%len(passwordAlphabet)])
		n++
	}
	return b.String(), nil
}
