package catalogue

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// fewReads is a store that reads single handlers. A question for the list panics.
type fewReads struct {
	store.Executors
	names []string
	asked int // for names
}

func (f *fewReads) FindHandler(_ context.Context, _ domain.TenantID, _ domain.ExecutorID, name string) (domain.Handler, error) {
	for _, n := range f.names {
		if n == name {
			return domain.Handler{Name: n}, nil
		}
	}
	return domain.Handler{}, domain.Errorf(domain.CodeNotFound, "no handler %q", name)
}

func (f *fewReads) ListHandlerNames(_ context.Context, _ domain.TenantID, _ domain.ExecutorID, _ string, limit int) ([]string, error) {
	f.asked++
	return f.names[:min(limit, len(f.names))], nil
}

func TestOnlyTheNamedHandlerIsRead(t *testing.T) {
	f := &fewReads{}
	for i := range 1000 {
		f.names = append(f.names, fmt.Sprintf("close-%04d", i))
	}
	executor := domain.Executor{ID: 1, Name: "shop"}
	h, err := Known(t.Context(), f, 1, executor, "close-0900", HintCall)
	require.NoError(t, err)
	require.Equal(t, "close-0900", h.Name)
	require.Zero(t, f.asked, "a handler that is there costs no list")
	_, err = Known(t.Context(), f, 1, executor, "close-001", HintCall)
	require.True(t, domain.Is(err, domain.CodeUnknownHandler), "%v", err)
	require.ErrorContains(t, err, `did you mean "close-0001"`)
	_, err = Known(t.Context(), f, 1, executor, "another name", HintCall)
	require.ErrorContains(t, err, HintCall)
	h, err = Known(t.Context(), &fewReads{}, 1, executor, "any", HintCall)
	require.NoError(t, err)
	require.Nil(t, h, "an executor without handlers is believed")
}
