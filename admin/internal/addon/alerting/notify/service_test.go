package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func ok(context.Context, *Notice) error { return nil }

func TestDeliversOnceToEveryTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, mail, hook := newOutbox(), newChannel(ChannelEmail, ok), newChannel(ChannelWebhook, ok)
		for id := range int64(20) {
			o.write(id+1, "ann@example.com", "https://hook.example.com")
		}
		_, stop := start(t, o, mail, hook)
		time.Sleep(10 * time.Second)
		stop()
		require.Len(t, mail.tellings(""), 20)
		require.Len(t, hook.tellings(""), 20)
		require.Equal(t, 40, o.count(noun.DeliveryDelivered))
		keys := map[string]bool{}
		for _, x := range append(mail.tellings(""), hook.tellings("")...) {
			require.Len(t, x.key, 32)
			keys[x.key] = true
		}
		require.Len(t, keys, 40, "one key per event and target")
	})
}

// A mail about a run that ended badly has the end of its log, and no other message has.
func TestMailsHaveTheLastLinesOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		for n := range 3 * logLines {
			o.log = append(o.log, fmt.Sprintf("line %d\nof it", n))
		}
		logs := make(chan []string, 2)
		told := func(_ context.Context, n *Notice) error { logs <- n.Log; return nil }
		_, stop := start(t, o, newChannel(ChannelEmail, told), newChannel(ChannelWebhook, ok))
		o.write(1, "ann@example.com", "https://hook.example.com")
		c := failedRun(1, "ann@example.com", "")
		got := <-logs
		stop()
		require.Len(t, got, logLines)
		require.Regexp(t, `^\d\d:\d\d:\d\d\.000 INFO line 40 of it$`, got[0])
		require.Contains(t, got[logLines-1], "line 59 of it")
		n := &Notice{Event: c.Event, Execution: c.Execution}
		n.Event.Kind = domain.AlertRunMissed
		New(Options{Store: o}).lastLines(t.Context(), n)
		require.Empty(t, n.Log, "a run that never started has no log")
	})
}

func TestNudgeDoesNotWaitForThePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, mail := newOutbox(), newChannel(ChannelEmail, ok)
		s, _ := start(t, o, mail)
		time.Sleep(3 * time.Second) // between two polls
		written := time.Now()
		o.write(1, "ann@example.com", "")
		for range 1000 {
			s.Nudge() // never blocks
		}
		synctest.Wait()
		require.Len(t, mail.tellings(""), 1)
		require.Equal(t, written, mail.tellings("")[0].at)
	})
}

func TestTemporaryErrorsAreRetriedForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		mail := newChannel(ChannelEmail, func(context.Context, *Notice) error { return errors.New("451 greylisted") })
		o.write(1, "ann@example.com", "")
		began := time.Now()
		_, stop := start(t, o, mail)
		time.Sleep(48 * time.Hour)
		stop()
		tellings := mail.tellings("")
		require.InDelta(t, 12, len(tellings), 1)
		for i, x := range tellings {
			require.Equal(t, tellings[0].key, x.key, "the key is stable")
			require.Equal(t, i+1, x.try)
			if i > 0 {
				gap, wait := x.at.Sub(tellings[i-1].at), waits[i-1]
				require.GreaterOrEqual(t, gap, wait*9/10)
				require.LessOrEqual(t, gap, wait*11/10+3*time.Second)
			}
		}
		last := tellings[len(tellings)-1].at.Sub(began)
		require.Greater(t, last, 14*time.Hour)
		require.LessOrEqual(t, last, 26*time.Hour)
		d := o.all()[0]
		require.Equal(t, noun.DeliveryFailed, d.State)
		require.Equal(t, "451 greylisted", d.LastError)
	})
}

func TestPermanentErrorsAreGivenUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		mail := newChannel(ChannelEmail, func(context.Context, *Notice) error {
			return fmt.Errorf("send: %w", Permanent(errors.New("550 no such user")))
		})
		o.write(1, "ann@example.com", "https://hook.example.com")
		_, stop := start(t, o, mail) // no webhook channel
		time.Sleep(time.Hour)
		stop()
		require.Len(t, mail.tellings(""), 1)
		require.Equal(t, noun.DeliveryFailed, o.all()[0].State)
		require.Equal(t, noun.DeliveryFailed, o.all()[1].State)
		require.Contains(t, o.all()[1].LastError, `no channel "webhook"`)
	})
}

func TestHangingReceiversHoldUpNobodyElse(t *testing.T) {
	for _, row := range []struct {
		name    string
		hosts   int // that hang
		each    int // deliveries to each of them, all before the good ones
		latest  time.Duration
		atMost  int // tellings per hanging host in the first minute
		workers int
	}{
		{"one host, many deliveries", 1, 5000, 5 * time.Second, 8, laneSends},
		{"more hosts than sends", 100, 20, 30 * time.Second, 8, laneSends},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOutbox()
				hook := newChannel(ChannelWebhook, func(ctx context.Context, n *Notice) error {
					if n.Target == "https://good" {
						return nil
					}
					return hang(ctx, n)
				})
				id := int64(0)
				for i := range row.hosts * row.each {
					id++
					o.write(id, "", fmt.Sprintf("https://hangs-%d", i%row.hosts))
				}
				for range 50 {
					id++
					o.write(id, "", "https://good")
				}
				began := time.Now()
				_, stop := start(t, o, hook)
				time.Sleep(time.Minute)
				good := hook.tellings("https://good")
				require.Len(t, good, 50)
				latest := time.Duration(0)
				for _, x := range good {
					latest = max(latest, x.at.Sub(began))
				}
				require.LessOrEqual(t, latest, row.latest)
				t.Logf("the last good one was told after %s", latest)
				for i := range row.hosts {
					host := fmt.Sprintf("https://hangs-%d", i)
					require.LessOrEqual(t, len(hook.tellings(host)), row.atMost, "a silent receiver is tested now and then")
					require.LessOrEqual(t, hook.mostAtOnce(host), row.workers)
				}
				stop()
			})
		})
	}
}

func TestABurstToAFastReceiverGoesOutAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		mail := newChannel(ChannelEmail, func(context.Context, *Notice) error {
			time.Sleep(5 * time.Millisecond)
			return nil
		})
		for id := range int64(10_000) {
			o.write(id+1, "ann@example.com", "")
		}
		_, stop := start(t, o, mail)
		time.Sleep(45 * time.Second) // alone, the receiver needs 12.5 s
		stop()
		require.Equal(t, 10_000, o.count(noun.DeliveryDelivered))
		require.Len(t, mail.tellings(""), 10_000, "each once")
	})
}

func TestAClosedLaneOpensWithTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		began := time.Now()
		hook := newChannel(ChannelWebhook, func(ctx context.Context, n *Notice) error {
			if time.Since(began) < 2*time.Minute {
				return hang(ctx, n)
			}
			return nil
		})
		for id := range int64(100) {
			o.write(id+1, "", "https://restarts")
		}
		_, stop := start(t, o, hook)
		time.Sleep(30 * time.Minute)
		stop()
		require.Equal(t, 100, o.count(noun.DeliveryDelivered))
		require.Less(t, len(hook.tellings("")), 120, "hardly one was told in vain")
	})
}

func TestASlowReceiverGetsAllInSmallPortions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		hook := newChannel(ChannelWebhook, func(_ context.Context, n *Notice) error {
			if n.Target == "https://slow" {
				time.Sleep(4 * time.Second)
			}
			return nil
		})
		for id := range int64(500) {
			o.write(id+1, "", "https://slow")
		}
		_, stop := start(t, o, hook)
		time.Sleep(time.Minute)
		o.write(501, "", "https://good")
		time.Sleep(5 * time.Second)
		require.Len(t, hook.tellings("https://good"), 1)
		time.Sleep(time.Hour)
		stop()
		require.Equal(t, 501, o.count(noun.DeliveryDelivered))
		require.Len(t, hook.tellings("https://slow"), 500, "each once")
		require.Equal(t, laneSends, hook.mostAtOnce("https://slow"))
	})
}

func TestToldAgainWithTheSameKeyWhenTheRecordIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, mail := newOutbox(), newChannel(ChannelEmail, ok)
		o.write(1, "ann@example.com", "")
		// The node dies between sending and recording: nothing it does reaches
		// the database any more.
		o.setFinish(func(int64, noun.DeliveryState) error { return errors.New("connection refused") })
		_, stop := start(t, o, mail)
		time.Sleep(10 * time.Second)
		stop()
		require.Len(t, mail.tellings(""), 1)
		require.Equal(t, noun.DeliveryPending, o.all()[0].State)

		o.setFinish(nil)
		_, stop = start(t, o, mail) // another node
		time.Sleep(claimHold + 10*time.Second)
		stop()
		tellings := mail.tellings("")
		require.Len(t, tellings, 2)
		require.Equal(t, tellings[0].key, tellings[1].key)
		require.Equal(t, 2, tellings[1].try)
		require.Equal(t, noun.DeliveryDelivered, o.all()[0].State)
	})
}

// What was told and could not be written down is written again, not told again.
func TestAFailedWriteDoesNotTellAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, mail := newOutbox(), newChannel(ChannelEmail, ok)
		o.write(1, "ann@example.com", "")
		writes := 0 // guarded by the outbox
		o.setFinish(func(int64, noun.DeliveryState) error {
			if writes++; writes < 3 {
				return errors.New("connection refused")
			}
			return nil
		})
		_, stop := start(t, o, mail)
		time.Sleep(claimHold + 10*time.Second)
		stop()
		require.Len(t, mail.tellings(""), 1)
		require.Equal(t, noun.DeliveryDelivered, o.all()[0].State)
	})
}

// TestWhatADeadNodeHadClaimedIsToldSoon: as soon as its lease has ended, not
// when its claim runs out by itself.
func TestWhatADeadNodeHadClaimedIsToldSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, mail := newOutbox(), newChannel(ChannelEmail, ok)
		o.write(1, "ann@example.com", "")
		o.setFinish(func(int64, noun.DeliveryState) error { return errors.New("connection refused") })
		_, stop := run(t, Options{Store: o, Senders: []Sender{mail}, Boot: "dies"})
		time.Sleep(time.Second)
		stop()
		require.Len(t, mail.tellings(""), 1)
		o.setFinish(nil)

		var living atomic.Value
		living.Store([]string{"heir", "dies"}) // its lease lasts
		run(t, Options{Store: o, Senders: []Sender{mail}, Boot: "heir", Living: func() []string { return living.Load().([]string) }})
		time.Sleep(claimHold / 2)
		require.Len(t, mail.tellings(""), 1)
		living.Store([]string{"heir"})
		time.Sleep(2 * time.Second) // the default PollInterval
		synctest.Wait()
		tellings := mail.tellings("")
		require.Len(t, tellings, 2)
		require.Equal(t, tellings[0].key, tellings[1].key)
		require.Equal(t, noun.DeliveryDelivered, o.all()[0].State)
	})
}

// TestANodeThatWasTakenForDeadTellsNothingOld: what it had claimed before may be
// another's; what is its own yet it claims anew.
func TestANodeThatWasTakenForDeadTellsNothingOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, mail := newOutbox(), newChannel(ChannelEmail, ok)
		var mu sync.Mutex
		shown, since := false, time.Now()
		o.write(1, "ann@example.com", "")
		o.write(2, "ben@example.com", "")
		_, stop := run(t, Options{Store: o, Senders: []Sender{mail}, Boot: "frozen", Shown: func() (time.Time, bool) {
			mu.Lock()
			defer mu.Unlock()
			return since, shown
		}})
		defer stop()
		time.Sleep(5 * time.Second)
		require.Empty(t, mail.tellings(""), "others may take it for dead")
		o.mu.Lock()
		o.claimedBy[1] = "heir" // which tells it now
		o.mu.Unlock()
		mu.Lock()
		shown, since = true, time.Now()
		mu.Unlock()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Len(t, mail.tellings("ben@example.com"), 1)
		require.Empty(t, mail.tellings("ann@example.com"))
	})
}

func TestStopLetsTellingsEndAndGivesBackTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		hook := newChannel(ChannelWebhook, func(ctx context.Context, n *Notice) error {
			if n.Target == "https://hangs" {
				return hang(ctx, n)
			}
			time.Sleep(3 * time.Second)
			return nil
		})
		hook.timeout = time.Minute
		for id := range int64(10) { // 4 under way, 6 waiting
			o.write(id+1, "", "https://slow")
		}
		o.write(11, "", "https://hangs")
		_, stop := start(t, o, hook)
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		require.Equal(t, stopGrace, time.Since(began))
		require.Equal(t, 4, o.count(noun.DeliveryDelivered), "what was told is recorded")
		for _, d := range o.all() {
			if d.State == noun.DeliveryPending {
				require.False(t, d.NextAt.After(time.Now()), "another node can take it at once")
			}
		}
	})
}

func TestGoesOnAfterTheDatabaseWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, mail := newOutbox(), newChannel(ChannelEmail, ok)
		o.setDown(domain.Errorf(domain.CodeUnavailable, "no connection"))
		o.write(1, "ann@example.com", "")
		_, stop := start(t, o, mail)
		time.Sleep(time.Minute)
		require.Empty(t, mail.tellings(""))
		o.setDown(nil)
		time.Sleep(3 * time.Second)
		stop()
		require.Len(t, mail.tellings(""), 1)
	})
}

func TestTwoNodesShareTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		slow := func(context.Context, *Notice) error { time.Sleep(time.Second); return nil }
		a, b := newChannel(ChannelEmail, slow), newChannel(ChannelEmail, slow)
		for id := range int64(30) {
			o.write(id+1, fmt.Sprintf("user%d@example.com", id%3), "")
		}
		_, stopA := start(t, o, a)
		_, stopB := start(t, o, b)
		time.Sleep(time.Minute)
		stopA()
		stopB()
		require.Equal(t, 30, len(a.tellings(""))+len(b.tellings("")), "each once")
		require.Equal(t, 30, o.count(noun.DeliveryDelivered))
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		o, mail := newOutbox(), newChannel(ChannelEmail, ok)
		o.write(1, "ann@example.com", "https://hook.example.com")
		s := New(Options{Store: o, Senders: []Sender{mail}, Metrics: registry, Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		cancel()
		require.NoError(t, <-done)
		families, err := registry.Gather()
		require.NoError(t, err)
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				got[name] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		require.Equal(t, map[string]float64{
			"carillon_alert_events_expanded_total":            1,
			"carillon_alert_deliveries_total email delivered": 1,
			"carillon_alert_deliveries_total webhook failed":  1,
			"carillon_alert_send_seconds email":               1,
			// Channels that are configured have all their series from the start.
			"carillon_alert_deliveries_total email failed":  0,
			"carillon_alert_deliveries_total email retry":   0,
			"carillon_alert_deliveries_total email put_off": 0,
		}, got)
	})
}
