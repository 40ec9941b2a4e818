package domain

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPassed: what a choice leaves says of each instance whether it had room, or
// that it cannot tell; it is never wrong.
func TestPassed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	asked, unsure := 0, 0
	for range 20_000 {
		ids, isFull := make([]InstanceID, 1+r.IntN(16)), map[InstanceID]bool{}
		for i := range ids {
			ids[i] = InstanceID(1_000_000 + r.Int64N(1<<50))
			isFull[ids[i]] = r.IntN(3) == 0
		}
		looked := ids[:1+r.IntN(len(ids))] // the others could not be reached
		wished := r.IntN(2) == 0
		p := NewPassed(len(looked), func(i int) bool { return isFull[looked[i]] }, func(i int) InstanceID { return looked[i] })
		if wished {
			p = p.AsWished()
		} else {
			p = p.AsTied()
		}
		require.True(t, p.Known())
		require.Positive(t, p)
		require.Equal(t, wished, p.Wished())
		require.NotEqual(t, wished, p.Tied())
		n, more := p.Looked()
		require.Equal(t, min(len(looked), 15), n)
		require.Equal(t, len(looked) >= 15, more)
		for _, id := range looked {
			full, sure := p.Full(id, ids)
			if asked++; sure {
				require.Equal(t, isFull[id], full)
			} else {
				unsure++
			}
		}
	}
	require.Less(t, unsure, asked/20, "of %d", asked)

	ids := []InstanceID{11, 12, 13}
	none := NewPassed(3, func(int) bool { return false }, nil)
	for _, id := range ids {
		full, sure := none.Full(id, ids)
		require.False(t, full)
		require.True(t, sure)
	}
	require.False(t, Passed(0).Known())
}
