package declare

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

func TestDeclaredSchedules(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_400).UTC()
	at := time.UnixMilli(1_800_000_000_000).UTC()
	for name, c := range map[string]struct {
		decl *proto.JobDeclaration
		want domain.ScheduleSpec
	}{
		"none": {&proto.JobDeclaration{}, domain.ScheduleSpec{Kind: domain.ScheduleNone}},
		"cron": {
			&proto.JobDeclaration{Cron: "0 2 * * *", DstGap: "skip", DstOverlap: "both", JitterMs: 1000, Calendars: []string{"holidays"}, CalendarDays: "workdays"},
			domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: "0 2 * * *", Gap: "skip", Overlap: "both", JitterMax: time.Second, Days: "workdays"},
		},
		"fixed rate": {
			&proto.JobDeclaration{EveryMs: 5000}, domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: 5 * time.Second, Anchor: now.Truncate(time.Second)},
		},
		"fixed rate from its start": {
			&proto.JobDeclaration{EveryMs: 5000, StartAtMs: at.UnixMilli()},
			domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: 5 * time.Second, Anchor: at, StartAt: at},
		},
		"fixed delay": {&proto.JobDeclaration{DelayMs: 5000}, domain.ScheduleSpec{Kind: domain.ScheduleFixedDelay, Every: 5 * time.Second}},
		"daily window": {
			&proto.JobDeclaration{EveryMs: 60_000, WindowFrom: "09:00", WindowTo: "17:00"},
			domain.ScheduleSpec{Kind: domain.ScheduleDailyWindow, Every: time.Minute, WindowFrom: "09:00", WindowTo: "17:00"},
		},
		"once":     {&proto.JobDeclaration{AtMs: at.UnixMilli()}, domain.ScheduleSpec{Kind: domain.ScheduleOnce, At: at}},
		"instants": {&proto.JobDeclaration{InstantsMs: []int64{at.UnixMilli()}}, domain.ScheduleSpec{Kind: domain.ScheduleInstants, Instants: []time.Time{at}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := domain.ScheduleSpec{Kind: domain.ScheduleNone}
			require.NoError(t, declaredSchedule(&got, c.decl, now))
			require.Equal(t, c.want, got)
			require.NoError(t, checkSchedule(got))
		})
	}
}

func TestDeclaredRouting(t *testing.T) {
	t.Parallel()
	var spec domain.JobSpec
	require.NoError(t, declaredRouting(&spec, &proto.JobDeclaration{
		RoutingKey: "/day", RequireLabels: "zone=eu", PreferLabels: "!spot", MaxSends: 3, SendDelayMs: 1500, SendBackoffPermille: 2000,
	}))
	require.Equal(t, "/day", spec.RoutingKey)
	require.True(t, spec.Require.Matches(map[string]string{"zone": "eu"}))
	require.False(t, spec.Prefer.Matches(map[string]string{"spot": ""}))
	require.Equal(t, domain.SendRetry{MaxSends: 3, Delay: 1500 * time.Millisecond, Backoff: 2}, spec.SendRetry)

	spec = domain.JobSpec{}
	require.NoError(t, declaredRouting(&spec, &proto.JobDeclaration{}))
	require.Zero(t, spec, "an older SDK says nothing of it")
	require.ErrorContains(t, declaredRouting(&spec, &proto.JobDeclaration{RequireLabels: "a b"}), "job.requireLabels")
	require.ErrorContains(t, declaredRouting(&spec, &proto.JobDeclaration{PreferLabels: ","}), "job.preferLabels")
}

// The defaults of a job are the same whoever makes it; a pause that was asked
// for is not cut by the bound that was not.
func TestDeclaredRetries(t *testing.T) {
	t.Parallel()
	require.Equal(t, domain.DefaultRetry, declaredRetry(&proto.JobDeclaration{}))
	require.Equal(t, domain.Retry{MaxAttempts: 4, Delay: time.Second, Backoff: 1, MaxDelay: 10 * time.Minute},
		declaredRetry(&proto.JobDeclaration{MaxAttempts: 4, RetryDelayMs: 1000}))
	slow := declaredRetry(&proto.JobDeclaration{MaxAttempts: 2, RetryDelayMs: (2 * time.Hour).Milliseconds()})
	require.Equal(t, 2*time.Hour, slow.DelayAfter(1))
}
