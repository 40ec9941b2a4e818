package domain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestParseTrace(t *testing.T) {
	for text, want := range map[string]domain.Trace{
		parent: parent,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-brings": parent,
		"":            "",
		parent + "-x": "", // version 00 ends there
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01": "",
		parent[:54]: "",
	} {
		require.Equal(t, want, domain.ParseTrace(text), text)
	}
}

func TestTrace(t *testing.T) {
	tr := domain.ParseTrace(parent)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", tr.ID())
	require.True(t, tr.Sampled())
	require.False(t, domain.ParseTrace(parent[:53]+"00").Sampled())
	trace, span := tr.IDs()
	require.Equal(t, tr, domain.NewTrace(trace, span, true))
	require.Empty(t, domain.NewTrace([16]byte{}, span, true))

	first, second := tr.Attempt(1), tr.Attempt(2)
	require.Equal(t, tr.ID(), first.ID(), "an attempt is in its run's trace")
	require.Equal(t, first, tr.Attempt(1), "anybody computes the same")
	require.NotEqual(t, first, second)
	require.NotEqual(t, tr, first)
	require.True(t, first.Sampled())
	require.False(t, domain.ParseTrace(parent[:53]+"00").Attempt(1).Sampled())

	var none domain.Trace
	require.Empty(t, none.ID())
	require.Empty(t, none.Attempt(1))
	require.False(t, none.Sampled())
}

func FuzzParseTrace(f *testing.F) {
	f.Add(parent)
	f.Fuzz(func(t *testing.T, text string) {
		tr := domain.ParseTrace(text)
		if tr == "" {
			return
		}
		trace, span := tr.IDs()
		require.Equal(t, tr[:53], domain.NewTrace(trace, span, tr.Sampled())[:53])
		require.NotEmpty(t, tr.Attempt(1))
	})
}
