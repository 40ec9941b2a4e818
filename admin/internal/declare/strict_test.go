package declare

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/proto"
)

func (s *shop) limit(kind domain.QuotaKind, limit int64) {
	s.t.Helper()
	require.NoError(s.t, s.SetQuotas(s.t.Context(), store.SetQuotasParams{Tenant: s.key.Tenant, Max: map[domain.QuotaKind]int64{kind: limit}}))
}

func (s *shop) used(kind domain.QuotaKind) int64 {
	s.t.Helper()
	all, err := s.ListQuotas(s.t.Context(), s.key.Tenant)
	require.NoError(s.t, err)
	for _, q := range all {
		if q.Kind == kind {
			return q.Used
		}
	}
	return 0
}

// create makes a job as another caller does.
func (s *shop) create(name string) {
	s.t.Helper()
	id := domain.JobID(s.ids.Next())
	_, err := s.CreateJob(s.t.Context(), domain.Job{
		ID: id, TenantID: s.key.Tenant, Executor: s.key.Executor, State: domain.JobEnabled, Source: domain.SourceConsole, Revision: 1,
		Spec: domain.JobSpec{Name: name, Handler: "close-day", Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone, Zone: "UTC", Dialect: "auto"}},
	}, timing.Next)
	require.NoError(s.t, err)
}

// everySecond is a declaration that fires 60 times in a minute.
func everySecond(name string) *proto.JobDeclaration {
	return daily(name, "1", "code", func(d *proto.JobDeclaration) { d.Cron, d.EveryMs = "", time.Second.Milliseconds() })
}

// A strict build over a quota changes nothing, and hears once which quotas it exceeds.
func TestStrictBuildsOverAQuota(t *testing.T) {
	t.Parallel()
	large := func(d *proto.JobDeclaration) { d.Input = []byte(`"` + strings.Repeat("x", 20_000) + `"`) }
	for name, c := range map[string]struct {
		limit func(s *shop)
		lift  map[domain.QuotaKind]int64
		jobs  []*proto.JobDeclaration
		want  []string
	}{
		"jobs": {
			limit: func(s *shop) { s.limit(domain.QuotaJobs, 3) }, lift: map[domain.QuotaKind]int64{domain.QuotaJobs: 4},
			jobs: []*proto.JobDeclaration{daily("a", "2", "code"), daily("b", "2", "code"), daily("c", "2", "code")},
			want: []string{"may have 3 jobs and has 2, this needs 2 more"},
		},
		"fires": {
			limit: func(s *shop) { s.limit(domain.QuotaFires, 100) }, lift: map[domain.QuotaKind]int64{domain.QuotaFires: 122},
			jobs: []*proto.JobDeclaration{daily("a", "2", "code"), everySecond("b"), everySecond("c")},
			want: []string{"may fire 100 times in a minute and are planned for 2, this needs 120 more"},
		},
		"stored bytes": {
			limit: func(s *shop) {
				s.between = func() { s.limit(domain.QuotaStoredBytes, s.used(domain.QuotaStoredBytes)) }
			},
			lift: map[domain.QuotaKind]int64{domain.QuotaStoredBytes: 0},
			jobs: []*proto.JobDeclaration{daily("a", "2", "code", large), daily("b", "2", "code", large), daily("c", "2", "code", large)},
			want: []string{"bytes and stores"},
		},
		"all of them": {
			limit: func(s *shop) {
				s.limit(domain.QuotaJobs, 2)
				s.limit(domain.QuotaFires, 1)
				s.between = func() { s.limit(domain.QuotaStoredBytes, s.used(domain.QuotaStoredBytes)) }
			},
			lift: map[domain.QuotaKind]int64{domain.QuotaJobs: 0, domain.QuotaFires: 0, domain.QuotaStoredBytes: 0},
			jobs: []*proto.JobDeclaration{daily("a", "2", "code", large), everySecond("b"), daily("c", "2", "code", large)},
			want: []string{"may have 2 jobs and has 2, this needs 2 more", "may fire 1 times in a minute", "bytes and stores"},
		},
		"a race for the last job": {
			limit: func(s *shop) {
				s.limit(domain.QuotaJobs, 4)
				s.between = func() { s.create("of another") }
			},
			lift: map[domain.QuotaKind]int64{domain.QuotaJobs: 5},
			jobs: []*proto.JobDeclaration{daily("a", "2", "code"), daily("b", "2", "code"), daily("c", "2", "code")},
			want: []string{"may have 4 jobs and has 3, this needs 2 more"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s *shop) {
				s.register("1", daily("a", "1", "code"), daily("dropped", "1", "code", remove("delete")))
				c.limit(s)
				s.strict = true
				revisions := func() (sum int64) {
					for _, name := range []string{"a", "dropped"} {
						list, err := s.ListRevisions(t.Context(), store.ListRevisionsParams{Tenant: s.key.Tenant, Job: s.job(name).ID, Limit: 10})
						require.NoError(t, err)
						sum += int64(len(list.Items))
					}
					return sum
				}
				before := revisions()
				_, notices := s.register("2", c.jobs...)
				require.Len(t, notices, 1)
				require.Equal(t, string(domain.CodeQuotaExceeded), notices[0].Code)
				require.Equal(t, "a", notices[0].Subject)
				for _, want := range append(c.want, "none of the 3 jobs of this strict version is taken") {
					require.Contains(t, notices[0].Message, want)
				}
				require.Equal(t, notices[0].Message, s.refused()[0].Message)
				s.gone("b")
				s.gone("c")
				require.EqualValues(t, 1, s.job("a").Revision)
				require.Equal(t, domain.JobEnabled, s.job("dropped").State)
				require.Equal(t, before, revisions(), "no revision is stored")

				for kind, limit := range c.lift {
					s.limit(kind, limit)
				}
				_, notices = s.register("2", c.jobs...)
				require.Empty(t, notices)
				require.Empty(t, s.refused())
				require.EqualValues(t, 2, s.job("a").Revision)
				require.NotNil(t, s.job("b"))
				require.NotNil(t, s.job("c"))
			})
		})
	}
}

// If others are quicker than a strict build, it looks again.
func TestStrictBuildsLookAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		s.register("1", daily("a", "1", "code"))
		s.strict = true
		s.between = func() { s.edit("a", func(j *domain.JobSpec) { j.Priority = 3 }) }
		_, notices := s.register("2", daily("a", "2", "code"), daily("b", "2", "code"))
		require.Empty(t, notices)
		require.Equal(t, "0 0 2 * * *", s.job("a").Spec.Schedule.Expr)
		require.EqualValues(t, 3, s.job("a").Revision)
		require.NotNil(t, s.job("b"))

		s.between = func() { s.create("c") }
		_, notices = s.register("3", daily("a", "3", "code"), daily("c", "3", "code"))
		require.Equal(t, []string{"c"}, subjects(notices), "the code owns it, and has replaced what another made")
		require.Equal(t, string(domain.CodeEdited), notices[0].Code)
		require.Equal(t, "0 0 3 * * *", s.job("a").Spec.Schedule.Expr)
	})
}

// Growth and its opposite count together, and a job that sleeps wakes with its update.
func TestStrictBuildsCountTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		s.strict = true
		first, _ := s.register("1", everySecond("a"), daily("b", "1", "code"), daily("c", "1", "code"))
		s.limit(domain.QuotaFires, 62)
		_, notices := s.register("2", daily("a", "1", "code"), everySecond("b"), daily("c", "1", "code"))
		require.Empty(t, notices)
		require.EqualValues(t, 62, s.used(domain.QuotaFires))

		s.leave("1", first)
		s.register("3", daily("a", "1", "code"))
		require.Equal(t, domain.JobEnabled, s.job("b").State, "version 2 is there")
	})
}
