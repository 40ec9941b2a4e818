package declare

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/proto"
)

// A strict build of whose jobs one is refused changes no job, and no other version
// takes turns with it.
func TestStrictBuildsChangeNothingWhenRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		old := []*proto.JobDeclaration{daily("a", "1", "code"), daily("dropped", "1", "code", remove("delete"))}
		first, _ := s.register("1", old...)
		s.strict = true
		olds, news := []domain.Instance{first}, []domain.Instance(nil)
		refusedOne := func() {
			t.Helper()
			i, notices := s.register("2", daily("a", "2", "code"), daily("b", "2", "code"), daily("bad", "25", "code"))
			require.Equal(t, []string{"bad"}, subjects(notices))
			news = append(news, i)
		}
		for range 2 {
			refusedOne()
			s.strict = false
			i, notices := s.register("1", old...)
			require.Empty(t, notices)
			olds, s.strict = append(olds, i), true
		}
		require.Equal(t, "bad", s.refused()[0].Name)
		require.Equal(t, []any{"0 0 1 * * *", int64(1)}, []any{s.job("a").Spec.Schedule.Expr, s.job("a").Revision})
		s.gone("b")

		// Also when it is alone.
		for _, i := range olds {
			s.leave("1", i)
		}
		refusedOne()
		require.EqualValues(t, 1, s.job("a").Revision)
		require.Equal(t, domain.JobEnabled, s.job("dropped").State)
		s.gone("b")

		for _, i := range news {
			s.leave("2", i)
		}
		_, notices := s.register("3", daily("a", "3", "code"), daily("b", "3", "code"))
		require.Empty(t, notices)
		require.Empty(t, s.refused())
		require.Equal(t, "0 0 3 * * *", s.job("a").Spec.Schedule.Expr)
		require.NotNil(t, s.job("b"))
	})
}

// What is edited is no refusal; and a strict build that is in force is not held back.
func TestStrictBuildsInForce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		s.strict = true
		s.register("1", daily("a", "1", "code"), daily("mine", "1", ""))
		s.edit("mine", func(j *domain.JobSpec) { j.Priority = 3 })
		_, notices := s.register("2", daily("a", "2", "code"), daily("mine", "2", ""))
		require.Equal(t, []string{"mine"}, subjects(notices))
		require.Equal(t, "0 0 2 * * *", s.job("a").Spec.Schedule.Expr)
	})
}

func TestDeclarationsThatAreNotTaken(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		_, notices := s.register("1", daily("fine", "1", "code"), daily("a word", "1", "mine"), daily("another", "1", "", remove("burn")), daily("an hour", "25", "code"))
		require.Len(t, notices, 3)
		require.Equal(t, []string{"a word", "an hour", "another"}, []string{notices[0].Subject, notices[1].Subject, notices[2].Subject})
		require.Contains(t, notices[0].Message, "code, console, propose")
		require.NotNil(t, s.job("fine"))
		s.gone("an hour")
		refused := s.refused()
		require.Len(t, refused, 3)
		for i, r := range refused {
			require.Equal(t, notices[i].Subject, r.Name)
			require.Equal(t, notices[i].Message, r.Message)
			require.Equal(t, notices[i].Code, string(r.Code))
			require.Equal(t, "1", r.Version)
		}

		s.register("2", daily("fine", "1", "code"), daily("a word", "1", "code"), daily("another", "1", "mine"))
		refused = s.refused()
		require.Len(t, refused, 2)
		require.Equal(t, []string{"an hour", "1", "another", "2"}, []string{refused[0].Name, refused[0].Version, refused[1].Name, refused[1].Version})
	})
}

// A build is told about what it declares itself: an old version that starts again
// beside a newer one is not to blame for that one's jobs.
func TestNoticesAreOfTheBuildItself(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		_, notices := s.register("1", daily("both", "25", "code"), daily("old", "25", "code"), daily("changed", "1", "code"))
		require.Equal(t, []string{"both", "old"}, subjects(notices))
		_, notices = s.register("2", daily("both", "25", "code"), daily("new", "25", "code"), daily("changed", "26", "code"))
		require.Equal(t, []string{"both", "changed", "new"}, subjects(notices))
		_, notices = s.register("1", daily("both", "25", "code"), daily("old", "25", "code"), daily("changed", "1", "code"))
		require.Equal(t, []string{"both", "old"}, subjects(notices))
	})
}

func subjects(notices []*proto.Notice) (out []string) {
	for _, n := range notices {
		out = append(out, n.Subject)
	}
	return out
}

// Callbacks and hooks have to be handlers of the executor, as for jobs that are
// made in the console.
func TestDeclaredCallbacksThatNoHandlerIs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		other := domain.ExecutorID(s.ids.Next())
		require.NoError(t, s.CreateExecutor(t.Context(), domain.Executor{ID: other, TenantID: s.key.Tenant, Name: "bank"}))
		require.NoError(t, s.DefineHandlers(t.Context(), s.key.Tenant, other, []domain.Handler{{Name: "elsewhere"}}))
		set := func(change func(*proto.JobDeclaration)) func(*proto.JobDeclaration) { return change }
		_, notices := s.register("1",
			daily("a", "1", "code", set(func(d *proto.JobDeclaration) { d.OnFailure = "elsewhere" })),
			daily("b", "1", "code", set(func(d *proto.JobDeclaration) { d.OnSuccess = "nowhere" })),
			daily("c", "1", "code", set(func(d *proto.JobDeclaration) {
				d.Sharding = &proto.Sharding{Mode: "fixed", Shards: 2, After: "nowhere"}
			})),
			daily("d", "1", "code", set(func(d *proto.JobDeclaration) { d.OnSuccess, d.OnFailure = "close-day", "close-day" })))
		require.Equal(t, []string{"a", "b", "c"}, subjects(notices))
		for i, field := range []string{"job.onFailure", "job.onSuccess", "job.sharding.after"} {
			require.Equal(t, "unknown_handler", notices[i].Code)
			require.Contains(t, notices[i].Message, field+": the executor has no handler")
		}
		s.gone("a")
		require.Equal(t, "close-day", s.job("d").Spec.OnFailure.Handler)
	})
}

// A callback to another place is read anew with each declaration, and knows the one that it
// replaces. Without the field, as an older admin reads it, its text is no handler.
func TestDeclaredCallbacksElsewhere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		var was []domain.FollowUp
		refuse := false
		s.d.opt.Callback = func(_ context.Context, of store.ExecutorKey, at string, to *proto.Callback, f domain.FollowUp) (domain.FollowUp, error) {
			require.Equal(t, s.key, of)
			was = append(was, f)
			if refuse {
				return domain.FollowUp{}, domain.Invalid(at+".url", "is refused")
			}
			return domain.FollowUp{Handler: "http", Executor: s.key.Executor, Request: `{"url":"` + to.Url + `"}`}, nil
		}
		to := func(url string) func(*proto.JobDeclaration) {
			return func(d *proto.JobDeclaration) { d.OnFailure, d.FailureTo = "no handler", &proto.Callback{Url: url} }
		}
		_, notices := s.register("1", daily("a", "1", "code", to("https://x")))
		require.Empty(t, notices)
		first := domain.FollowUp{Handler: "http", Executor: s.key.Executor, Request: `{"url":"https://x"}`}
		require.Equal(t, first, s.job("a").Spec.OnFailure)
		s.register("2", daily("a", "1", "code", to("https://y")))
		require.Equal(t, `{"url":"https://y"}`, s.job("a").Spec.OnFailure.Request)
		require.Equal(t, []domain.FollowUp{{}, first}, was)
		refuse = true
		_, notices = s.register("3", daily("a", "2", "code", to("https://z")))
		require.Equal(t, "job.onFailure.url: is refused", notices[0].Message)
		require.Equal(t, "0 0 1 * * *", s.job("a").Spec.Schedule.Expr, "nothing of the declaration counts")

		_, notices = s.register("4", daily("b", "1", "code", func(d *proto.JobDeclaration) { d.OnFailure = "no handler" }))
		require.Equal(t, []string{"b", "unknown_handler"}, []string{notices[0].Subject, notices[0].Code})
		_, err := s.d.callsOf(t.Context(), s.key, &proto.Handler{Name: "close-day", Calls: &proto.JobDeclaration{OnSuccess: strings.Repeat("x", 129)}})
		require.ErrorContains(t, err, "job.onSuccess: must have at most 128 bytes")
	})
}

// What a quota does not allow is told as all else that is not taken, and the next
// registration tries again.
func TestDeclarationsOverTheQuota(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		limit := func(jobs int64) {
			p := store.SetQuotasParams{Tenant: s.key.Tenant, Max: map[domain.QuotaKind]int64{domain.QuotaJobs: jobs}}
			require.NoError(t, s.SetQuotas(t.Context(), p))
		}
		limit(1)
		_, notices := s.register("1", daily("a", "1", "code"), daily("b", "2", "code"))
		require.Len(t, notices, 1)
		require.Equal(t, []string{"b", "quota_exceeded"}, []string{notices[0].Subject, notices[0].Code})
		require.Equal(t, notices[0].Message, s.refused()[0].Message)
		require.NotNil(t, s.job("a"))
		s.gone("b")
		limit(2)
		s.register("1", daily("a", "1", "code"), daily("b", "2", "code"))
		require.Empty(t, s.refused())
		require.NotNil(t, s.job("b"))
	})
}

// Jobs of builds that may declare none are refused unless another build that may
// has them; those that are there stay, also when nobody may declare them.
func TestBuildsThatMayNotDeclare(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		s.register("1", daily("a", "1", "code", remove("delete")))
		before := s.job("a")
		s.silent = true
		second, notices := s.register("2", daily("a", "2", "code", remove("delete")), daily("b", "2", "code"))
		require.Len(t, notices, 1)
		require.Equal(t, []string{"b", "permission_denied"}, []string{notices[0].Subject, notices[0].Code})
		require.Equal(t, before.Spec.Schedule.Expr, s.job("a").Spec.Schedule.Expr)
		s.gone("b")
		s.leave("2", second)
		require.Empty(t, s.refused())

		_, notices = s.register("3", daily("a", "3", "code", remove("delete")))
		require.Empty(t, notices, "version 1 is there, and may")
		s.silent = false
		s.register("3", daily("a", "3", "code", remove("delete")))
		require.NotEqual(t, before.Spec.Schedule.Expr, s.job("a").Spec.Schedule.Expr, "one of the build may")
	})
}

// refused is what an operator sees of the jobs that were not taken.
func (s *shop) refused() []domain.RefusedDeclaration {
	list, err := s.ListRefusedDeclarations(s.t.Context(), s.key.Tenant, s.key.Executor)
	require.NoError(s.t, err)
	return list
}

// What the API refuses is refused of code too, and its author is told where:
// before, the half that the kind does not use was ignored in silence.
func TestDeclarationsThatContradictThemselves(t *testing.T) {
	t.Parallel()
	s := newShop(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db"))
	declare := func(d *proto.JobDeclaration) (own []*proto.Notice) {
		d.Name = domain.JobID(s.ids.Next()).String()
		_, notices := s.register(d.Name, d)
		for _, n := range notices { // those before hear it again
			if n.Subject == d.Name {
				own = append(own, n)
				s.gone(d.Name)
			}
		}
		return own
	}
	for want, d := range map[string]*proto.JobDeclaration{
		"job.schedule.jitter: is longer than every, so that runs would overtake each other; at most 1m": {EveryMs: 60_000, JitterMs: 60_001},
		"job.misfire.maxRuns: needs the policy all; leave it out for once_now":                          {Cron: "0 2 * * *", Misfire: "once_now", MisfireMaxRuns: 3},
		"job.misfire.window: needs the policy all; leave it out for skip":                               {Cron: "0 2 * * *", MisfireWindowMs: 1},
		"job.parallelism: needs blocking parallel; leave it out for serial":                             {Parallelism: 2, Blocking: "serial"},
		"job.schedule.every: is for schedules of kind fixed_rate, fixed_delay, daily_window; leave it out for cron": {
			Cron: "0 2 * * *", DelayMs: 1000,
		},
		"job.schedule.windowFrom: is for schedules of kind daily_window; leave it out for cron":          {Cron: "0 2 * * *", WindowFrom: "08:00"},
		"job.schedule.at: is for schedules of kind once; leave it out for fixed_rate":                    {EveryMs: 1000, AtMs: 1_800_000_000_000},
		"job.schedule.every: every_ms and delay_ms exclude each other":                                   {EveryMs: 1000, DelayMs: 1000},
		"job.schedule.every: is for schedules of kind fixed_rate, fixed_delay, daily_window; leave it o": {AtMs: 1_800_000_000_000, Cron: "0 2 * * *", EveryMs: 1},
		"job.schedule.dstGap: is for schedules of kind cron, daily_window; leave it out for fixed_rate":  {EveryMs: 1000, DstGap: "skip"},
		"job.schedule.dstOverlap: is for schedules of kind cron; leave it out for daily_window": {
			EveryMs: 1000, WindowFrom: "08:00", WindowTo: "10:00", DstOverlap: "both",
		},
		"job.schedule.calendarDays: needs calendars; leave it out":    {EveryMs: 1000, CalendarDays: "workdays"},
		"job.schedule.endAt: is before startAt":                       {EveryMs: 1000, StartAtMs: 1_800_000_000_000, EndAtMs: 1_700_000_000_000},
		"job.schedule.endAt: must lie in the years from 1970 to 9998": {EveryMs: 1000, EndAtMs: domain.Never.UnixMilli()},
	} {
		notices := declare(d)
		require.Len(t, notices, 1, want)
		require.Equal(t, "validation_failed", notices[0].Code)
		require.Contains(t, notices[0].Message, want)
	}
	both := declare(&proto.JobDeclaration{EveryMs: 1000, JitterMs: 2000, MisfireMaxRuns: 1})
	require.Contains(t, both[0].Message, "at most 1s; job.misfire.maxRuns: needs", "all that is wrong at once")
	for _, d := range []*proto.JobDeclaration{
		{EveryMs: 1000, JitterMs: 1000}, {Cron: "0 2 * * *", Misfire: "all", MisfireMaxRuns: 3, MisfireWindowMs: 1000},
		{EveryMs: 1000, DstGap: "run_at_gap_end", DstOverlap: "once"}, // executor.ClockChanges names both
		{EveryMs: 1000, WindowFrom: "08:00", WindowTo: "10:00", DstGap: "skip", DstOverlap: "once"},
	} {
		require.Empty(t, declare(d))
	}
}

// A job that was declared so before stays as it is until its declaration changes.
func TestDeclaredContradictionsOfBeforeStay(t *testing.T) {
	t.Parallel()
	s := newShop(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db"))
	d := daily("close", "1", "code")
	s.register("1", d)
	d.MisfireMaxRuns = 3
	hash, err := declarationHash("close-day", d)
	require.NoError(t, err)
	j := s.job("close")
	j.Spec.Misfire.MaxRuns = 3
	_, err = s.UpdateJob(t.Context(), store.UpdateJobParams{
		Tenant: s.key.Tenant, ID: j.ID, Spec: j.Spec, Source: domain.SourceCode, DeclarationHash: hash, Declared: &j.Declared, By: declaredBy, Next: timing.Next,
	})
	require.NoError(t, err)
	_, notices := s.register("2", d)
	require.Empty(t, notices)
	require.EqualValues(t, 2, s.job("close").Revision)
	d.MisfireMaxRuns = 4
	_, notices = s.register("3", d)
	require.Len(t, notices, 1)
	require.Equal(t, 3, s.job("close").Spec.Misfire.MaxRuns)
}
