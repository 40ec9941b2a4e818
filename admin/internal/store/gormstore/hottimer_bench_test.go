package gormstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// BenchmarkHotTimers measures, with a million timers that are due later, what a look
// costs that finds nothing, and what finding and claiming 50,000 costs that are due
// on one second: by the database's index, and by a hot store in Redis, in turn. The
// processor's time is this process's, without the servers'. Run it once: -benchtime 1x.
func BenchmarkHotTimers(b *testing.B) {
	const rounds = 3
	for name, options := range bothDatabases {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				s := openStore(b, options(b))
				w := newWorld(b, s, 1, domain.BlockParallel)
				hw := &hotWorld{world: w, job: w.timers(1, time.Now().Add(time.Hour)), figures: map[string]float64{}}
				require.NoError(b, s.SetQuotas(b.Context(), store.SetQuotasParams{Tenant: w.tenant, Max: map[domain.QuotaKind]int64{domain.QuotaTimers: 0}, By: "bench"}))
				hw.set(1_000_000, func(i int) time.Time { return time.Now().Add(time.Hour + time.Duration(i%86_400)*time.Second) })
				for range rounds {
					hw.measure(b, "database", &watchedHot{HotTimers: unknownTimers{}})
					hw.measureRedis(b)
				}
				for what, sum := range hw.figures {
					b.ReportMetric(sum/rounds, what)
				}
			}
		})
	}
}

func (w *hotWorld) measureRedis(b *testing.B) {
	redis := testenv.Redis(b)
	set, err := hotset.Open(hotset.Options{
		URL: "redis://:" + redis.Password + "@" + redis.Addr, Prefix: b.Name(), Timers: w.s,
		Held: func() []domain.PartitionTerm { return w.held }, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(b, err)
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { set.Run(ctx) })
	w.measure(b, "redis", &watchedHot{HotTimers: set})
	stop()
	running.Wait()
	require.NoError(b, set.Close())
}

// unknownTimers is a hot store that knows nothing.
type unknownTimers struct{}

func (unknownTimers) DueTimers(_ context.Context, held []domain.PartitionTerm, _ time.Duration, _ int) ([]store.HotTimer, []int) {
	return nil, domain.Collect(held, func(p *domain.PartitionTerm) int { return p.Partition })
}

func (unknownTimers) TimersTried([]domain.TimerID) {}

// watchedHot notes that it was asked, and how much it left to the database.
type watchedHot struct {
	store.HotTimers
	asked   bool
	unknown int
}

func (h *watchedHot) DueTimers(ctx context.Context, held []domain.PartitionTerm, horizon time.Duration, limit int) (due []store.HotTimer, unknown []int) {
	due, unknown = h.HotTimers.DueTimers(ctx, held, horizon, limit)
	h.asked, h.unknown = true, len(unknown)
	return due, unknown
}

type hotWorld struct {
	*world
	job     domain.JobID
	number  int
	figures map[string]float64 // sums over the rounds
}

func (w *hotWorld) set(n int, at func(i int) time.Time) {
	w.tb.Helper()
	for left := n; left > 0; {
		list := make([]store.SetTimer, min(left, domain.MaxTimerBatch))
		for i := range list {
			w.number++
			list[i].Timer = domain.Timer{
				ID: domain.TimerID(w.ids.Next()), TenantID: w.tenant, JobID: w.job, FireAt: at(w.number).Truncate(time.Millisecond),
				Key: fmt.Sprintf("order-%014d", w.number), Input: fmt.Appendf(nil, `{"order":"%029d"}`, w.number),
			}
		}
		for _, r := range w.s.SetTimers(w.tb.Context(), store.SetTimersParams{Timers: list}) {
			require.NoError(w.tb, r.Err)
		}
		left -= len(list)
	}
}

// claim is one claim; search is how long it took until it had its rows.
func (w *hotWorld) claim(hot *watchedHot) (claimed int, search time.Duration) {
	began := time.Now()
	id := func() int64 {
		if search == 0 {
			search = time.Since(began)
		}
		return w.ids.Next()
	}
	hot.asked = false
	got, err := w.s.ClaimDueTimers(w.tb.Context(), store.ClaimDueTimersParams{Partitions: w.held, Horizon: 3 * time.Second, Limit: 500, NewID: id, Hot: hot})
	require.NoError(w.tb, err)
	return len(got.Executions), search
}

func (w *hotWorld) measure(b *testing.B, name string, hot *watchedHot) {
	b.Helper()
	said := name
	note := func(what string, value float64) {
		w.figures[name+"-"+what] += value
		said += fmt.Sprintf(" %s %.0f", what, value)
	}
	defer func() { b.Log(said) }()
	const due, looks = 50_000, 400
	at := time.Now().Add(25 * time.Second)
	w.set(due, func(int) time.Time { return at })
	if name == "redis" {
		for hot.unknown = 1; hot.unknown > 0; { // all is copied
			w.claim(hot)
		}
	}
	began, cpu := time.Now(), processTime(b)
	for range looks {
		w.claim(hot)
	}
	note("idle-µs/look", float64(time.Since(began).Microseconds())/looks)
	note("idle-cpu-µs/look", float64((processTime(b)-cpu).Microseconds())/looks)

	<-time.After(time.Until(at.Add(-2 * time.Second)))
	var with, without, total time.Duration
	searches, claims, claimed := 0, 0, 0
	began, cpu = time.Now(), processTime(b)
	for claimed < due {
		from := time.Now()
		n, search := w.claim(hot)
		total += time.Since(from)
		claimed += n
		if claims++; hot.asked {
			with += search
			searches++
		} else {
			without += search
		}
	}
	find := float64(with.Microseconds())/float64(searches) - float64(without.Microseconds())/float64(claims-searches)
	note("find-µs", find)
	note("find-%", 100*find*float64(searches)/float64(total.Microseconds()))
	note("claim/s", due/time.Since(began).Seconds())
	note("cpu-µs/timer", float64((processTime(b)-cpu).Microseconds())/due)
}

// processTime is what this process has used of the processors.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
