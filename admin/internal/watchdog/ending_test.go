package watchdog

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// TestEndingsAreSummedUp: one line for each job, state and reason of an interval,
// with the job's name, however many runs there are.
func TestEndingsAreSummedUp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := NewEndings(slog.New(slog.NewTextHandler(&out, nil)), func(_ context.Context, _ domain.TenantID, job domain.JobID, _ int64) (*domain.JobSpec, error) {
		if job == 2 {
			return nil, domain.Errorf(domain.CodeNotFound, "no such job")
		}
		return &domain.JobSpec{Name: "close-day"}, nil
	})
	run := func(id, job int, state domain.State, reason domain.Reason) domain.Execution {
		return domain.Execution{ID: domain.ExecutionID(id), TenantID: 7, JobID: domain.JobID(job), Revision: 1, State: state, Reason: reason}
	}
	for i := range 5000 {
		s.Add([]domain.Execution{run(100+i, 1, domain.Missed, domain.ReasonNoExecutor), run(i, 1, domain.Succeeded, "")})
	}
	s.Add([]domain.Execution{run(9, 2, domain.Lost, domain.ReasonLeaseExpired), run(10, 1, domain.RetryWait, "")})
	require.NoError(t, s.Tell(t.Context()))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `level=INFO msg="runs ended badly" component=runs state=missed reason=no_executor count=5000 tenant_id=7 job_id=1 job=close-day execution_id=100`)
	require.Contains(t, lines[1], "level=WARN")
	require.Contains(t, lines[1], "state=lost")

	out.Reset()
	require.NoError(t, s.Tell(t.Context()))
	require.Empty(t, out.String(), "each is told once")
	for i := range maxEndings + 50 {
		s.Add([]domain.Execution{run(i, 10+i, domain.Failed, "")})
	}
	require.NoError(t, s.Tell(t.Context()))
	lines = strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, maxEndingLines+1)
	require.Contains(t, lines[maxEndingLines], "count=1030")
}
