package domain

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model plays the database and the world around one execution: it makes
// random moves, mostly sensible ones, and knows what must be true after each.
type model struct {
	e   *Execution
	p   Policy
	now time.Time

	slots    int           // what the slot row would hold for this execution
	started  map[int64]int // attempt number by fence, for starts not disproved
	archived map[int]int64 // fence by attempt number
	unknown  bool          // the newest attempt's outcome is unknown
}

func newModel(t *rapid.T) *model {
	attempts := rapid.IntRange(1, 4).Draw(t, "max attempts")
	return &model{
		e: newExecution(attempts), now: t0, started: map[int64]int{}, archived: map[int]int64{},
		p: Policy{
			Retry: Retry{
				MaxAttempts: attempts, Delay: time.Duration(rapid.IntRange(0, 60).Draw(t, "delay")) * time.Second,
				Backoff: rapid.Float64Range(0, 4).Draw(t, "backoff"),
			},
			SendRetry: SendRetry{
				MaxSends: rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "max sends"),
				Delay:    time.Duration(rapid.IntRange(0, 5).Draw(t, "send delay")) * time.Second,
			},
			RetryLost:       rapid.Bool().Draw(t, "retry lost"),
			Timeout:         time.Duration(rapid.IntRange(0, 60).Draw(t, "timeout")) * time.Second,
			DispatchTimeout: time.Duration(rapid.IntRange(0, 300).Draw(t, "dispatch timeout")) * time.Second,
		},
	}
}

// fence mostly is the right one.
func (m *model) fence(t *rapid.T) int64 {
	return max(m.e.Fence-int64(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1, 2, -1}).Draw(t, "older by")), 0)
}

// apply makes one move and checks everything that must hold after it.
func (m *model) apply(t *rapid.T, name string, move func() (Effects, error)) {
	before := *m.e
	fx, err := move()
	e := m.e
	if err != nil {
		if !equalExecution(before, *e) || fx != (Effects{}) {
			t.Fatalf("%s was refused (%v) but changed something", name, err)
		}
		return
	}
	m.book(t, before, fx)
	switch {
	case e.Fence < before.Fence:
		t.Fatalf("%s: fence went from %d to %d", name, before.Fence, e.Fence)
	case before.State.Terminal() && e.State != before.State && before.State != Lost:
		t.Fatalf("%s: left the terminal state %s for %s", name, before.State, e.State)
	case e.State.Terminal() && e.HoldsSlot && !e.Lingers:
		t.Fatalf("%s: %s holds its slot", name, e.State)
	case e.Lingers && !e.State.Terminal():
		t.Fatalf("%s: %s lingers", name, e.State)
	case before.Lingers && e.State != before.State:
		t.Fatalf("%s: the end of the handler made %s of %s", name, e.State, before.State)
	case before.HoldsSlot && !before.Lingers && e.Lingers && !e.HoldsSlot:
		t.Fatalf("%s: lingers, and has given its slot away", name)
	case (e.State.Terminal() && !e.Lingers) != e.WakeAt.IsZero():
		t.Fatalf("%s: %s wakes at %v", name, e.State, e.WakeAt)
	case e.Attempt < 0 || e.Attempt > e.MaxAttempts:
		t.Fatalf("%s: attempt %d of %d", name, e.Attempt, e.MaxAttempts)
	case m.p.SendRetry.MaxSends > 0 && e.Sends().Failed() > m.p.SendRetry.MaxSends:
		t.Fatalf("%s: %d sends led to nothing, allowed %d", name, e.Sends().Failed(), m.p.SendRetry.MaxSends)
	case len(m.started) > e.MaxAttempts:
		t.Fatalf("%s: %d starts, allowed %d", name, len(m.started), e.MaxAttempts)
	case e.HoldsSlot != (m.slots == 1):
		t.Fatalf("%s: the slot row counts %d, the execution says %v", name, m.slots, e.HoldsSlot)
	case e.State != Offered && !e.State.OnInstance() && !e.Deadline.IsZero():
		t.Fatalf("%s: %s has a deadline", name, e.State)
	case m.unknown && !m.p.RetryLost && (e.State == Offered || e.State == Running || e.State == RetryWait):
		t.Fatalf("%s: an attempt with unknown outcome is repeated, though the job forbids it", name)
	}
	checkBounds(t, name, e)
	m.checkAttempts(t, name)
}

// checkAttempts looks at the list that people read: each number once, and the current
// attempt last, if it has begun.
func (m *model) checkAttempts(t *rapid.T, name string) {
	var archived []Attempt
	for number, fence := range m.archived {
		archived = append(archived, Attempt{Number: number, Fence: fence})
	}
	slices.SortFunc(archived, func(a, b Attempt) int { return cmp.Compare(a.Fence, b.Fence) })
	list := Attempts(m.e, archived)
	for n := 1; n < len(list); n++ {
		if list[n].Number <= list[n-1].Number {
			t.Fatalf("%s: attempt %d (fence %d) comes before attempt %d (fence %d)", name, list[n-1].Number, list[n-1].Fence, list[n].Number, list[n].Fence)
		}
	}
	if m.e.State == Running && (len(list) == 0 || list[len(list)-1].Fence != m.e.Fence) {
		t.Fatalf("%s: the attempt %d that runs is not in the list", name, m.e.Attempt)
	}
}

// book keeps the books that the store keeps.
func (m *model) book(t *rapid.T, before Execution, fx Effects) {
	e := m.e
	if fx.ReleaseSlot {
		m.slots--
	}
	if fx.Archive != nil {
		if f, ok := m.archived[fx.Archive.Number]; ok && f != fx.Archive.Fence {
			t.Fatalf("attempt %d is archived with the fences %d and %d", fx.Archive.Number, f, fx.Archive.Fence)
		}
		m.archived[fx.Archive.Number] = fx.Archive.Fence
	}
	if e.State == Running && before.State != Running && before.State != Cancelling {
		if _, twice := m.started[e.Fence]; twice {
			t.Fatalf("fence %d was granted twice", e.Fence)
		}
		m.started[e.Fence] = e.Attempt
	}
	wantAlert := e.State != before.State && (e.State == Failed || e.State == TimedOut || e.State == Lost ||
		e.State == Missed && toldAsMissed(e.Reason))
	if (fx.Alert != "") != wantAlert {
		t.Fatalf("from %s to %s with alert %q", before.State, e.State, fx.Alert)
	}
}

func checkBounds(t *rapid.T, name string, e *Execution) {
	if !e.StartedAt.IsZero() && e.StartedAt.Before(e.GrantedAt) {
		t.Fatalf("%s: started %v before it was granted %v", name, e.StartedAt, e.GrantedAt)
	}
	if e.State == Due || e.State == RetryWait {
		if e.WakeAt.Before(e.NotBefore) && e.Reason != ReasonWaitInstance && e.Reason != ReasonWaitSlot && e.Reason != ReasonWaitLimit {
			t.Fatalf("%s: wakes %v before its time %v", name, e.WakeAt, e.NotBefore)
		}
	}
}

// equalExecution compares without the slices, which no refused move touches.
func equalExecution(a, b Execution) bool {
	return a.State == b.State && a.Fence == b.Fence && a.Attempt == b.Attempt && a.WakeAt.Equal(b.WakeAt) &&
		a.HoldsSlot == b.HoldsSlot && a.Lingers == b.Lingers && a.ReturnedAt.Equal(b.ReturnedAt) && a.NotBefore.Equal(b.NotBefore) && a.ExpireAt.Equal(b.ExpireAt) &&
		a.Deadline.Equal(b.Deadline) && a.Reason == b.Reason && a.Message == b.Message && a.Instance == b.Instance &&
		a.StartedAt.Equal(b.StartedAt) && a.FinishedAt.Equal(b.FinishedAt) && a.LogLines == b.LogLines && a.Error == b.Error
}

func (m *model) offer(t *rapid.T) {
	granted := rapid.Bool().Draw(t, "granted")
	at := m.now
	if m.now.Before(m.e.NotBefore) && rapid.Bool().Draw(t, "patient") {
		at = m.e.NotBefore
		m.now = at
	}
	m.apply(t, "offer", func() (Effects, error) {
		err := m.e.Offer(at, testNode, testInstance, granted, granted, m.p)
		if err == nil {
			m.unknown = false
			if !m.e.HoldsSlot {
				m.e.HoldsSlot, m.slots = true, m.slots+1
			}
		}
		return Effects{}, err
	})
}

func (m *model) finish(t *rapid.T) {
	r := Report{
		Fence:        m.fence(t),
		Outcome:      rapid.SampledFrom([]Outcome{OutcomeSucceeded, OutcomeFailed, OutcomeFailed, OutcomeTimedOut, OutcomeCancelled, OutcomeNeverStarted, OutcomeUnknown}).Draw(t, "outcome"),
		ErrorKind:    rapid.SampledFrom([]string{"", "", "error", "panic", "permanent"}).Draw(t, "kind"),
		RetryAfter:   time.Duration(rapid.IntRange(-1, 5).Draw(t, "retry after")) * time.Second,
		StillRunning: rapid.IntRange(0, 9).Draw(t, "still running") < 3,
		LogLines:     int64(rapid.IntRange(-1, 3).Draw(t, "log lines")),
	}
	if rapid.Bool().Draw(t, "has start") {
		r.StartedAt = m.now.Add(time.Duration(rapid.IntRange(-3600, 3600).Draw(t, "executor's clock")) * time.Second)
	}
	stale := r.Fence != m.e.Fence
	m.apply(t, "finish", func() (Effects, error) {
		was := m.e.State
		fx, err := m.e.Finish(m.now, r, m.p)
		if stale && !Is(err, CodeStaleFence) {
			t.Fatalf("a report with fence %d got %v, the fence is %d", r.Fence, err, m.e.Fence)
		}
		if err == nil {
			m.unknown = r.Outcome == OutcomeUnknown && was != Cancelling
			if r.Outcome == OutcomeNeverStarted {
				// Proven: it was no start. The next attempt has its number.
				delete(m.started, r.Fence)
				maps.DeleteFunc(m.archived, func(_ int, fence int64) bool { return fence == r.Fence })
			}
		}
		return fx, err
	})
}

func TestMovesKeepTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int{1, 500, 3_000, 20_000, 400_000}).Draw(t, "ms")) * time.Millisecond)
			},
			"offer":  m.offer,
			"offer ": m.offer, // twice as likely, so that more runs get far
			"grant": func(t *rapid.T) {
				f := m.fence(t)
				m.apply(t, "grant", func() (Effects, error) {
					return Effects{}, m.e.Grant(m.now, f, testInstance, m.p)
				})
			},
			"give back": func(t *rapid.T) {
				f := m.fence(t)
				m.apply(t, "give back", func() (Effects, error) {
					return Effects{}, m.e.GiveBack(m.now, f, ReasonOfferRefused, "", time.Second)
				})
			},
			"refuse": func(t *rapid.T) {
				f := m.fence(t)
				m.apply(t, "refuse", func() (Effects, error) {
					err := m.e.Refuse(m.now, f, ReasonOfferRefused, "", time.Second)
					if err == nil && rapid.Bool().Draw(t, "busy") {
						m.e.Sends().ToFull()
					}
					if err == nil {
						delete(m.started, f) // who says no has not started it
					}
					return Effects{}, err
				})
			},
			"started": func(t *rapid.T) {
				f := m.fence(t)
				m.apply(t, "started", func() (Effects, error) {
					return Effects{}, m.e.Started(m.now, f, testInstance, m.now.Add(-time.Second))
				})
			},
			"wait": func(t *rapid.T) {
				reason := rapid.SampledFrom([]Reason{ReasonWaitInstance, ReasonWaitSlot, ReasonWaitLimit}).Draw(t, "reason")
				m.apply(t, "wait", func() (Effects, error) {
					return Effects{}, m.e.Wait(m.now, reason, "", m.now.Add(time.Second))
				})
			},
			"finish": m.finish,
			"lose": func(t *rapid.T) {
				m.apply(t, "lose", func() (Effects, error) {
					was := m.e.State
					fx, err := m.e.Lose(m.now, ReasonLeaseExpired, "", m.p)
					m.unknown = m.unknown || err == nil && was == Running
					return fx, err
				})
			},
			"expire deadline": func(t *rapid.T) {
				m.apply(t, "expire deadline", func() (Effects, error) { return m.e.ExpireDeadline(m.now) })
			},
			"cancel": func(t *rapid.T) {
				if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
					t.Skip("most runs are not cancelled")
				}
				m.apply(t, "cancel", func() (Effects, error) { return m.e.RequestCancel(m.now, ReasonKilled, "") })
			},
			"cover": func(t *rapid.T) {
				if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
					t.Skip("most runs are not covered")
				}
				m.apply(t, "cover", func() (Effects, error) { return m.e.Cover(m.now, "") })
			},
			"miss": func(t *rapid.T) {
				if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
					t.Skip("most runs are not missed")
				}
				m.apply(t, "miss", func() (Effects, error) { return m.e.Miss(m.now, ReasonPaused, "") })
			},
			"sweep": func(t *rapid.T) {
				lease := m.now.Add(time.Duration(rapid.IntRange(-20, 20).Draw(t, "lease")) * time.Second)
				m.apply(t, "sweep", func() (Effects, error) {
					was := m.e.State
					_, fx, err := m.e.Sweep(m.now, lease, time.Second, m.p)
					m.unknown = m.unknown || was == Running && (m.e.State == Lost || m.e.State == RetryWait)
					return fx, err
				})
			},
		})
	})
}
