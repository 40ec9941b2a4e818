package auth

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// guess is a try with a wrong password.
func guess(t *testing.T, s *Service, account, address string) error {
	t.Helper()
	_, err := s.Login(t.Context(), LoginParams{Username: account, Password: "wrong", Address: address})
	return err
}

func TestAtMostTenWrongPasswordsAMinuteAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withAdmin(t)
		var checked []time.Time
		for range 10_000 { // one every 30 ms for five minutes
			before := s.hasher.computed.Load()
			err := guess(t, s, "admin", "192.0.2.1")
			switch s.hasher.computed.Load() - before {
			case 1:
				require.True(t, domain.Is(err, domain.CodeUnauthenticated))
				checked = append(checked, time.Now())
			case 0:
				var limited *LimitedError
				require.ErrorAs(t, err, &limited)
				require.True(t, domain.Is(err, domain.CodeRateLimited))
				require.Positive(t, limited.After)
				require.LessOrEqual(t, limited.After, loginRefill)
			}
			time.Sleep(30 * time.Millisecond)
		}
		for i := range checked {
			inMinute := 0
			for _, at := range checked[i:] {
				if at.Sub(checked[i]) < time.Minute {
					inMinute++
				}
			}
			require.LessOrEqual(t, inMinute, 10, "from %s on", checked[i])
		}
		require.Greater(t, len(checked), 20, "the limit must not lock anybody out for good")
	})
}

// TestNobodyIsRefusedForTheFailuresOfOthers: whoever fails, the right password
// works for the same account from elsewhere, and for others from the same place.
func TestNobodyIsRefusedForTheFailuresOfOthers(t *testing.T) {
	s, m := withAdmin(t)
	addUser(t, s, m, "vera", "acme", domain.RoleViewer)
	for i := range 40 {
		_ = guess(t, s, "admin", "198.51.100."+strconv.Itoa(i/4))
		_ = guess(t, s, "nobody-"+strconv.Itoa(i), "192.0.2.1")
	}
	require.True(t, domain.Is(guess(t, s, "nobody-1", "198.51.100.1"), domain.CodeUnauthenticated))
	for range 2 * loginBurst { // successes do not count
		login(t, s, "admin", adminPassword)
		login(t, s, "vera", "vera password")
	}
}

func TestAnIPv6NetworkIsOneAddress(t *testing.T) {
	for address, group := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64", "": "", "no address": "no address",
	} {
		require.Equal(t, group, addressGroup(address), address)
	}
	s, _ := withAdmin(t)
	for i := range loginBurst {
		require.True(t, domain.Is(guess(t, s, "admin", "2001:db8::"+strconv.Itoa(i+1)), domain.CodeUnauthenticated))
	}
	require.True(t, domain.Is(guess(t, s, "admin", "2001:db8::ffff"), domain.CodeRateLimited))
	require.True(t, domain.Is(guess(t, s, "admin", "2001:db8:0:1::1"), domain.CodeUnauthenticated))
}

// TestFailuresAreBounded: names are as long as a client likes, and there are as
// many as it likes.
func TestFailuresAreBounded(t *testing.T) {
	f := newFailures(loginBurst, loginRefill)
	now := time.Unix(1_800_000_000, 0)
	name := strings.Repeat("x", 190)
	for i := range maxFailures + 1000 {
		f.note(pairOf(name+strconv.Itoa(i), "192.0.2.1"), now)
	}
	require.Equal(t, maxFailures, f.byPair.Len())
	for i := range 1000 {
		require.NoError(t, f.check(pairOf(name+strconv.Itoa(-i), "192.0.2.1"), now))
	}
	require.Equal(t, maxFailures, f.byPair.Len(), "to ask makes no entry")
}
