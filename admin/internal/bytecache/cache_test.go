package bytecache

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestATenantWithMuchTakesNobodysRoom(t *testing.T) {
	c := New[int, string](1000, 1600)
	for i := range 10 {
		c.Add(i, "b", 2, 10)
	}
	for i := range 1000 {
		c.Add(100+i, "a", 1, 100)
		_, bytes := c.Held()
		require.LessOrEqual(t, bytes, int64(1600))
	}
	for i := range 10 {
		_, ok := c.Get(i)
		require.True(t, ok, "the other tenant keeps what it has")
	}
	_, ok := c.Get(1099)
	require.True(t, ok, "the newest stays")
	c.Add(2000, "large", 1, 101)
	_, ok = c.Get(2000)
	require.False(t, ok, "a value has at most a sixteenth")
}

// TestCacheAgainstAModel: its counts of values and bytes are right and within the bounds,
// and a value that was just added is there.
func TestCacheAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most, bytes = 8, 320
		c := New[int, int64](most, bytes)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.IntRange(0, 15).Draw(t, "key")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				size := rapid.Int64Range(1, 20).Draw(t, "size")
				c.Add(key, size, domain.TenantID(key%3), size)
				got, ok := c.Peek(key)
				require.True(t, ok)
				require.Equal(t, size, got)
			case 2:
				c.Get(key)
			default:
				c.Remove(key)
				_, ok := c.Peek(key)
				require.False(t, ok)
			}
			values, held := c.Held()
			sum, n := int64(0), 0
			for key := range 16 {
				if size, ok := c.Peek(key); ok {
					sum, n = sum+size, n+1
				}
			}
			require.Equal(t, n, values)
			require.Equal(t, sum, held)
			require.LessOrEqual(t, values, most)
			require.LessOrEqual(t, held, int64(bytes))
		}
	})
}
