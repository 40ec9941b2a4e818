package panics_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/panics"
)

func TestCallReturnsWhatPanicked(t *testing.T) {
	broken := errors.New("broken")
	require.Equal(t, broken, panics.Catch(func() error { return broken }))
	require.NoError(t, panics.Catch(func() error { return nil }))

	err := panics.Catch(func() error { panic(broken) })
	require.ErrorIs(t, err, broken)
	var p *panics.Panic
	require.ErrorAs(t, err, &p)
	require.Contains(t, string(p.Stack), "panics_test.go")

	var none map[string]int
	require.ErrorContains(t, panics.Catch(func() error { none["a"]++; return nil }), "assignment to entry in nil map")
	require.EqualError(t, panics.Catch(func() error { panic("why not") }), "panic: why not")
}
