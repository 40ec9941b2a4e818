package rescue_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/rescue"
)

func TestCallReturnsWhatPanicked(t *testing.T) {
	broken := errors.New("broken")
	require.Equal(t, broken, rescue.Call(func() error { return broken }))
	require.NoError(t, rescue.Call(func() error { return nil }))

	err := rescue.Call(func() error { panic(broken) })
	require.ErrorIs(t, err, broken)
	var p *rescue.Panic
	require.ErrorAs(t, err, &p)
	require.Contains(t, string(p.Stack), "rescue_test.go")

	var none map[string]int
	require.ErrorContains(t, rescue.Call(func() error { none["a"]++; return nil }), "assignment to entry in nil map")
	require.EqualError(t, rescue.Call(func() error { panic("why not") }), "panic: why not")
}
