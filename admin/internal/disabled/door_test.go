package disabled

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestNoProcessIsAdmittedToACopy(t *testing.T) {
	list := []domain.ExecutorIdentity{{Tenant: 7, Executor: 8}, {Tenant: 7, Executor: 9}}
	out, err := Door{NoFire: true}.Denied(t.Context(), list)
	require.NoError(t, err)
	require.Len(t, out, 2)
	require.Equal(t, domain.CodeExecutorDisabled, domain.CodeOf(out[1]))
}
