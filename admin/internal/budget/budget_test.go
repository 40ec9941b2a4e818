package budget

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAShareShrinks(t *testing.T) {
	t.Parallel()
	b := New[string](12, 8)
	try := func(who string, size int64) (*Held, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		return b.Take(ctx, who, size)
	}
	first, err := b.Take(t.Context(), "acme", 100)
	require.NoError(t, err)
	_, err = try("acme", 1)
	require.ErrorIs(t, err, ErrShare)
	_, err = try("beta", 5)
	require.ErrorIs(t, err, ErrNode)

	first.Shrink(3)
	first.Shrink(5) // it does not grow
	second, err := try("acme", 5)
	require.NoError(t, err)
	_, err = try("acme", 1)
	require.ErrorIs(t, err, ErrShare)
	held, peak := b.Held()
	require.EqualValues(t, []int64{8, 8}, []int64{held, peak})

	first.Release()
	first.Release()
	first.Shrink(1)
	second.Release()
	held, _ = b.Held()
	require.Zero(t, held)
	require.Zero(t, b.Owners())
}
