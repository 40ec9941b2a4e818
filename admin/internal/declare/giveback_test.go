package declare

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// giveBack does what the API does.
func (s *shop) giveBack(name string) {
	s.t.Helper()
	v := s.job(name)
	d, err := s.d.Declaration(s.t.Context(), v)
	require.NoError(s.t, err)
	require.NoError(s.t, v.MayGiveBack(d.Declared))
	_, err = s.UpdateJob(s.t.Context(), store.UpdateJobParams{
		Tenant: s.key.Tenant, ID: v.ID, IfRevision: v.Revision, Spec: d.Spec, Source: domain.SourceCode, DeclarationHash: d.Hash,
		Declared: &d.Declared, By: "anna", Next: timing.Next,
	})
	require.NoError(s.t, err)
	s.d.GivenBack(s.t.Context(), s.key.Tenant, s.key.Executor)
}

// A job that was edited follows the code again, from its newest declaration on.
func TestGivingBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		s.d.applied.keep = time.Hour
		first, _ := s.register("1", daily("close", "1", ""))
		s.edit("close", func(j *domain.JobSpec) {
			j.Schedule.Expr, j.Labels = "0 0 9 * * *", map[string]string{"team": "books"}
		})
		d, err := s.d.Declaration(t.Context(), s.job("close"))
		require.NoError(t, err)
		require.Equal(t, []string{"0 0 1 * * *", "1"}, []string{d.Spec.Schedule.Expr, d.Declared.Version})

		second, notices := s.register("2", daily("close", "2", ""))
		require.Equal(t, []string{"close"}, subjects(notices))
		require.Len(t, s.refused(), 1)
		s.giveBack("close")
		require.Equal(t, "0 0 2 * * *", s.job("close").Spec.Schedule.Expr, "at once")
		require.Equal(t, "books", s.job("close").Spec.Labels["team"])
		require.Equal(t, domain.SourceCode, s.job("close").Source)
		require.Empty(t, s.refused(), "it is taken now")
		again, notices := s.register("2", daily("close", "2", ""))
		require.Empty(t, notices, "what was remembered of the build is not")
		require.Error(t, ptr(s.job("close").Job).MayGiveBack(s.job("close").Declared))

		third, _ := s.register("3", daily("close", "3", ""))
		require.Equal(t, "0 0 3 * * *", s.job("close").Spec.Schedule.Expr, "the next change is followed")

		// While nothing runs, the last declaration counts.
		s.edit("close", func(j *domain.JobSpec) { j.Schedule.Expr = "0 0 9 * * *" })
		for _, i := range []domain.Instance{first, second, again, third} {
			require.NoError(t, storetest.LeaveInstance(t.Context(), s, s.key.Tenant, i.ID, "stopped"))
			s.left[i.Name] = true // instances are called like their versions here
		}
		s.giveBack("close")
		require.Equal(t, "0 0 3 * * *", s.job("close").Spec.Schedule.Expr)
	})
}

func TestDeclarationsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	s := newShop(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db"))
	s.register("1", daily("close", "1", ""), daily("wrong later", "1", ""))
	v := s.job("close")
	v.Declared.Name = "another"
	_, err := s.d.Declaration(t.Context(), v)
	require.True(t, domain.Is(err, domain.CodeNotFound), "%v", err)
	s.register("2", daily("close", "1", ""), daily("wrong later", "25", ""))
	_, err = s.d.Declaration(t.Context(), s.job("wrong later"))
	require.ErrorContains(t, err, "job.schedule.expr: 25 is outside 0-23")
}

func ptr[T any](v T) *T { return &v }
