package explain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// TestWhichLimit: one of the two, with its number and how many run.
func TestWhichLimit(t *testing.T) {
	limits := []LimitCount{{Tenants: true, Max: 9, Running: 9, Waiting: 4}, {Name: "shop", Max: 3, Running: 2, Waiting: 1}}
	for _, c := range []struct {
		tenants      bool
		now, zh      string
		before       string
		withoutLimit string
	}{
		{false, `It is due and waits, because the executor "shop" may have 3 runs at once: 2 are running now, 1 waiting for room.`, "执行器“shop”同时最多运行 3 个：目前运行 2 个，等待 1 个",
			"It ran and succeeded; it started 7s late, because the executor was at its limit of 3 runs at once.", "because the executor was at its limit of 3"},
		{true, "It is due and waits, because the tenant may have 9 runs at once: 9 are running now, 4 waiting for room.", "租户同时最多运行 9 个：目前运行 9 个，等待 4 个",
			"It ran and succeeded; it started 7s late, because the tenant was at its limit of 9 runs at once.", "because the tenant was at its limit of 9"},
	} {
		message := domain.LimitMessage(c.tenants, map[bool]int64{false: 3, true: 9}[c.tenants])
		waits := domain.Execution{State: domain.Due, Reason: domain.ReasonWaitLimit, Message: message, FireAt: fire, NotBefore: fire}
		got := Run{Execution: waits, Spec: spec, Now: at(1000), Limits: limits}.Explain().Summary
		require.Equal(t, c.now, got.En)
		require.Contains(t, got.Zh, c.zh)
		require.Contains(t, Run{Execution: waits, Spec: spec, Now: at(1000)}.Explain().Summary.En, c.withoutLimit)

		late := domain.Execution{State: domain.Succeeded, FireAt: fire, StartedAt: at(7000), Attempt: 1, Delays: []domain.Delay{
			{At: at(1), LastAt: at(1), Count: 1, Reason: domain.ReasonWaitLimit, Message: message},
		}}
		e := Run{Execution: late, Spec: spec, Now: at(9000)}.Explain()
		require.Equal(t, c.before, e.Summary.En)
		for _, s := range e.Steps {
			require.NotContains(t, s.Text.En, "may have", "it is said once")
			require.NotContains(t, s.Text.Zh, "runs at once")
		}
	}
}
