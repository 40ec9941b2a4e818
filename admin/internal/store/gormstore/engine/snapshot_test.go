package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSnapshot: what was read before it changed is not kept, and a failed reading
// keeps what there was.
func TestSnapshot(t *testing.T) {
	var s snapshot[int]
	load := func(good time.Duration, read func() (int, error)) int {
		value, err := s.load(good, read)
		require.NoError(t, err)
		return value
	}
	is := func(n int) func() (int, error) { return func() (int, error) { return n, nil } }
	require.Equal(t, 1, load(time.Hour, is(1)))
	require.Equal(t, 1, load(time.Hour, is(2)), "it is good for a while")
	s.forget()
	require.Equal(t, 3, load(time.Hour, func() (int, error) {
		s.forget() // it changes while it is read
		return 3, nil
	}))
	require.Equal(t, 1, s.last())
	require.Equal(t, 4, load(time.Hour, is(4)))
	require.Equal(t, 4, s.last())
	s.forget()
	_, err := s.load(time.Hour, func() (int, error) { return 0, errors.New("away") })
	require.Error(t, err)
	require.Equal(t, 4, s.last())
}
