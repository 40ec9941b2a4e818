package auth

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestAtMostTenTriesAMinuteGetThrough(t *testing.T) {
	tests := []struct {
		name            string
		account, source func(i int) string
	}{
		{"one account from one address", fixed("admin"), fixed("192.0.2.1")},
		{"one account from many addresses", fixed("admin"), numbered("192.0.2.")},
		{"many accounts from one address", numbered("user"), fixed("192.0.2.1")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLimits()
			start := time.Unix(1_800_000_000, 0)
			var through []time.Time
			for i := range 10_000 { // one every 30 ms for five minutes
				at := start.Add(time.Duration(i) * 30 * time.Millisecond)
				if l.takeLogin(tt.account(i), tt.source(i), at) == nil {
					through = append(through, at)
				}
			}
			for i := range through {
				inMinute := 0
				for _, at := range through[i:] {
					if at.Sub(through[i]) < time.Minute {
						inMinute++
					}
				}
				require.LessOrEqual(t, inMinute, 10, "from %s on", through[i])
			}
			require.Greater(t, len(through), 20, "the limit must not lock anybody out for good")
		})
	}
}

func fixed(s string) func(int) string { return func(int) string { return s } }

func numbered(prefix string) func(int) string {
	return func(i int) string { return prefix + strconv.Itoa(i) }
}

func TestRefusalByTheAccountDoesNotCountForTheAddress(t *testing.T) {
	l := newLimits()
	now := time.Unix(1_800_000_000, 0)
	for range loginBurst {
		require.NoError(t, l.takeLogin("admin", "198.51.100.7", now))
	}
	for range 100 {
		err := l.takeLogin("admin", "192.0.2.1", now)
		require.True(t, domain.Is(err, domain.CodeRateLimited))
		var limited *LimitedError
		require.ErrorAs(t, err, &limited)
		require.Positive(t, limited.After)
		require.LessOrEqual(t, limited.After, loginRefill)
	}
	require.NoError(t, l.takeLogin("someone else", "192.0.2.1", now))
}

func TestSuccessGivesTheTryBack(t *testing.T) {
	l := newLimits()
	now := time.Unix(1_800_000_000, 0)
	for range 1000 {
		require.NoError(t, l.takeLogin("admin", "192.0.2.1", now))
		l.giveBackLogin("admin", "192.0.2.1", now)
	}
}
