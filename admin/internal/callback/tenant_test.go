package callback

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// A secret that does not open is its tenant's affair.
func TestOneSecretThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	box, err := secret.New(bytes.Repeat([]byte{7}, secret.KeySize))
	require.NoError(t, err)
	sealed, err := box.Seal(2, secret.PurposeCallbacks, 2, []byte("signs"))
	require.NoError(t, err)
	got, err := Tenants{Store: builtIn{
		{Tenant: 1, Callbacks: &domain.CallbackPolicy{Secret: sealed}}, // another tenant's
		{Tenant: 2, Callbacks: &domain.CallbackPolicy{Secret: sealed}},
		{Tenant: 3},
	}, Box: box}.List(t.Context())
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.ErrorIs(t, got[0].Err, secret.ErrUnreadable)
	require.NoError(t, got[1].Err)
	require.Equal(t, "signs", string(got[1].Policy.Secret))
	require.True(t, got[2].Err == nil && got[2].Policy == nil)
}

// builtIn is a store with built-in executors.
type builtIn []store.BuiltIn

func (b builtIn) ListBuiltIn(context.Context) ([]store.BuiltIn, error) { return b, nil }
