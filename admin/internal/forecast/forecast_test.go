package forecast

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// memory is a store of schedules. Ids are the places of the jobs, from 1.
type memory struct {
	jobs     []domain.ScheduleSpec
	revision int64
	read     int // schedules
	most     int // schedules of one answer; 0: all
}

func (m *memory) ListScheduled(_ context.Context, p store.ListJobsParams, after domain.JobID) (out []store.ScheduledJob, _ error) {
	for i := int(after); i < len(m.jobs) && len(out) < p.Limit; i++ {
		id := domain.JobID(i + 1)
		out = append(out, store.ScheduledJob{JobRevision: store.JobRevision{Job: id, Revision: m.revision}, Name: fmt.Sprintf("job %05d", id)})
	}
	return out, nil
}

func (m *memory) FindSchedules(_ context.Context, _ domain.TenantID, list []store.JobRevision) (map[store.JobRevision]domain.ScheduleSpec, error) {
	out := map[store.JobRevision]domain.ScheduleSpec{}
	for _, r := range list {
		if m.most > 0 && len(out) == m.most {
			break
		}
		m.read++
		out[r] = m.jobs[r.Job-1]
	}
	return out, nil
}

func (m *memory) FillCalendar(_ context.Context, _ domain.TenantID, u *domain.CalendarUse) error {
	u.Content = &domain.CalendarSpec{Holidays: []domain.CalendarDay{{Date: "2026-11-24"}}}
	return nil
}

func cron(expr string) domain.ScheduleSpec {
	return domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: expr, Dialect: "auto"}
}

var monday = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func TestCount(t *testing.T) {
	holidays := cron("0 2 * * *")
	holidays.Calendars = []domain.CalendarUse{{ID: 77, Version: 3}}
	m := &memory{revision: 1, most: 2, jobs: []domain.ScheduleSpec{
		cron("*/20 * * * *"), cron("30 2 * * *"), holidays, {Kind: domain.ScheduleFixedDelay, Every: time.Minute}, cron("*/20 * * * *"), cron("61 * * * *"),
		{Kind: domain.ScheduleNone}, {Kind: domain.ScheduleFixedRate, Every: 90 * time.Minute, Anchor: monday},
	}}
	f := New(m)
	count := func(from time.Time, span, bucket time.Duration, listed int) *Forecast {
		out, err := f.Count(t.Context(), Params{Jobs: store.ListJobsParams{Tenant: 7}, From: from, To: from.Add(span), Bucket: bucket, Listed: listed})
		require.NoError(t, err)
		return out
	}
	for range 2 { // the second time from the cache
		got := count(monday.Add(2*time.Hour), 2*time.Hour, time.Hour, 3)
		require.Equal(t, []Bucket{{monday.Add(2 * time.Hour), 8, 4}, {monday.Add(3 * time.Hour), 7, 3}}, got.Buckets)
		require.Equal(t, []int64{15, 5, 2}, []int64{got.Fires, int64(got.Jobs), int64(got.Unpredicted)})
		require.Len(t, got.Listed, 3)
		require.Equal(t, []string{"job 00001", "job 00003", "job 00005"}, []string{got.Listed[0].Name, got.Listed[1].Name, got.Listed[2].Name})
		require.Equal(t, []time.Time{monday.Add(2 * time.Hour)}, got.Listed[1].First)
		require.Len(t, got.Listed[0].First, 6)
		require.Equal(t, int64(6), got.Listed[0].Fires)
	}
	require.Equal(t, 8, m.read, "each revision once")
	require.Equal(t, int64(2), count(monday, 3*24*time.Hour, 24*time.Hour, 10).Listed[3].Fires, "a calendar excludes one day of three")
	require.Empty(t, count(monday, time.Hour, time.Hour, 0).Listed)

	fine := count(monday.Add(2*time.Hour+10*time.Minute), 25*time.Minute, 20*time.Minute, 1)
	require.Equal(t, []Bucket{{monday.Add(130 * time.Minute), 2, 2}, {monday.Add(150 * time.Minute), 1, 1}}, fine.Buckets, "the last one ends early")

	m.revision, m.jobs[1] = 2, cron("30 5 * * *")
	require.Equal(t, int64(7), count(monday.Add(2*time.Hour), time.Hour, time.Hour, 0).Fires, "a new revision counts")
}

func TestCountRefusesTooManySteps(t *testing.T) {
	calendars := []domain.CalendarUse{{ID: 78, Version: 1}}
	jobs := make([]domain.ScheduleSpec, 60)
	for i := range jobs { // the quarters of an hour in Nepal are counted one by one
		jobs[i] = domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: fmt.Sprintf("* %d-59 * * * *", i%30), Dialect: "seconds", Zone: "Asia/Kathmandu", Calendars: calendars, EndAt: monday.AddDate(1, i, 0)}
	}
	f := New(&memory{jobs: jobs})
	f.steps = 10_000
	_, err := f.Count(t.Context(), Params{From: monday, To: monday.AddDate(0, 0, 7), Bucket: time.Hour})
	require.True(t, domain.Is(err, domain.CodeInvalid), "%v", err)
}

func TestClashes(t *testing.T) {
	f := New(&memory{jobs: []domain.ScheduleSpec{cron("0 2 * * *"), cron("*/30 0 2 * * *"), cron("0 2 * * *"), cron("15 0 2 * * *"), {Kind: domain.ScheduleFixedDelay, Every: time.Minute}}})
	at := []time.Time{monday.Add(2 * time.Hour), monday.Add(2*time.Hour + 30*time.Second), monday.Add(3 * time.Hour)}
	got, err := f.Clashes(t.Context(), store.ListJobsParams{}, at, 3)
	require.NoError(t, err)
	require.Equal(t, []Clash{{2, 3}, {1, 3}, {0, 0}}, got)
}

// BenchmarkWeek counts a week of 10,000 jobs by hours: the first answer, and the next ones from
// the cache.
func BenchmarkWeek(b *testing.B) {
	const n = 10_000
	for name, kind := range map[string]func(i int) domain.ScheduleSpec{
		"every minute": func(int) domain.ScheduleSpec { return cron("* * * * *") },
		"rate of a minute, each with its anchor": func(i int) domain.ScheduleSpec {
			return domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: time.Minute, Anchor: monday.Add(time.Duration(i) * time.Second)}
		},
		"every minute, each with its end": func(i int) domain.ScheduleSpec {
			s := cron("* * * * *")
			s.EndAt = monday.AddDate(1, 0, 0).Add(time.Duration(i) * time.Second)
			return s
		},
	} {
		m := &memory{}
		for i := range n {
			m.jobs = append(m.jobs, kind(i))
		}
		count := func(f *Forecaster) {
			_, err := f.Count(b.Context(), Params{From: monday, To: monday.AddDate(0, 0, 7), Bucket: time.Hour, Listed: 100})
			require.NoError(b, err)
		}
		b.Run(name+"/first", func(b *testing.B) {
			for b.Loop() {
				count(New(m))
			}
		})
		b.Run(name+"/next", func(b *testing.B) {
			f := New(m)
			before := heap()
			count(f)
			b.ReportMetric(float64(heap()-before), "heap-bytes")
			for b.Loop() {
				count(f)
			}
			runtime.KeepAlive(f)
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
