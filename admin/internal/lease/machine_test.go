package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// balanced requires that each partition has one owner, and that the shares
// differ by one at most.
func balanced(t require.TestingT, w *world) {
	counts := map[string]int{}
	for p := range domain.Partitions {
		owners := w.owners(p)
		require.Len(t, owners, 1, "partition %d", p)
		counts[owners[0].boot]++
	}
	least, most := domain.Partitions, 0
	for _, n := range w.living() {
		least, most = min(least, counts[n.boot]), max(most, counts[n.boot])
	}
	require.LessOrEqual(t, most-least, 1, "%v", counts)
}

// TestNeverTwoOwners lets messages take any time, be lost before and after
// they took effect, nodes come, go, die and freeze, and the database stand
// still. No two nodes ever believe in the same partition, no belief outlasts
// its lease, and terms only grow. When all is calm again, all is shared.
func TestNeverTwoOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.join()
		var terms [domain.Partitions]int64
		frozen := map[*node]time.Duration{}
		check := func() {
			for p := range w.rows {
				require.GreaterOrEqual(t, w.rows[p].Term, terms[p])
				terms[p] = w.rows[p].Term
			}
			var owned [domain.Partitions]string
			for _, n := range w.living() {
				for _, h := range n.machine.Held(w.now) {
					require.Empty(t, owned[h.Partition], "partition %d has two owners, one is %s", h.Partition, n.boot)
					owned[h.Partition] = n.boot
					require.Equal(t, h.Term, w.rows[h.Partition].Term)
					require.True(t, w.rows[h.Partition].Until.After(w.db()), "%s trusts a lease that is over", n.boot)
				}
			}
		}
		some := func() *node { return rapid.SampledFrom(w.nodes).Draw(t, "node") }
		for range rapid.IntRange(20, 150).Draw(t, "rounds") {
			for _, n := range w.nodes {
				// Often less than one whole exchange: what is under way takes long.
				for range rapid.SampledFrom([]int{0, 1, 1, 2, 3, 8, 20}).Draw(t, "steps") {
					if frozen[n] <= w.now {
						w.step(n)
					}
				}
			}
			check()
			w.now += time.Duration(rapid.SampledFrom([]int{1, 20, 60, 120, 250, 600}).Draw(t, "ms")) * time.Millisecond
			check()
			switch rapid.IntRange(0, 40).Draw(t, "fault") {
			case 1:
				w.lose(some())
			case 2:
				frozen[some()] = w.now + time.Duration(rapid.IntRange(1, 6000).Draw(t, "frozen"))*time.Millisecond
			case 3:
				n := some()
				n.linked = !n.linked && n.alive
			case 4:
				w.down = !w.down
			case 5:
				if n := some(); n.alive && n.call == nil {
					n.queue = append(n.queue, n.machine.Step(w.now, Refused{})...)
				}
			case 6:
				if len(w.nodes) < 5 {
					w.join()
				}
			case 7:
				w.kill(some())
			case 8:
				if n := some(); n.alive && n.call == nil {
					n.queue = n.machine.Step(w.now, Stop{})
				}
			}
		}
		for _, n := range w.nodes {
			n.linked = n.alive
		}
		if len(w.living()) == 0 {
			w.join()
		}
		w.calm(4*TTL + Grace)
		balanced(t, w)
		check()
	})
}

// TestMovesAreMinimal: a join moves the newcomer's share, a death and a stop
// what the one had who went, and nothing moves without a reason.
func TestMovesAreMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for range rapid.IntRange(1, 6).Draw(t, "nodes") {
			w.join()
		}
		w.calm(2 * TTL)
		balanced(t, w)
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			w.moved = [domain.Partitions]int{}
			living := w.living()
			expected := 0
			victim := rapid.SampledFrom(living).Draw(t, "victim")
			switch what := rapid.SampledFrom([]string{"join", "kill", "stop", "nothing"}).Draw(t, "what"); {
			case what == "join":
				w.join()
				expected = domain.Partitions / (len(living) + 1)
			case what == "kill" && len(living) > 1:
				expected = victim.machine.count()
				w.kill(victim)
			case what == "stop" && len(living) > 1:
				expected = victim.machine.count()
				victim.queue = append(victim.queue, victim.machine.Step(w.now, Stop{})...)
			}
			w.calm(2*TTL + Grace)
			balanced(t, w)
			total := 0
			for p, n := range w.moved {
				require.LessOrEqual(t, n, 1, "partition %d moved twice", p)
				total += n
			}
			require.Equal(t, expected, total)
		}
	})
}

// TestAKilledNodeIsReplacedBeforeItsPlansEnd: its plans are fired by others at
// their next look, each by one, and its partitions move when their leases end.
func TestAKilledNodeIsReplacedBeforeItsPlansEnd(t *testing.T) {
	w := newWorld()
	victim, one, two := w.join(), w.join(), w.join()
	w.calm(plansLast + TTL) // what moved when they joined is fired
	balanced(t, w)
	var had []int
	for _, h := range victim.machine.Held(w.now) {
		had = append(had, h.Partition)
	}
	one.adopts, two.adopts = nil, nil
	w.kill(victim)
	w.calm(LookEvery + 20*time.Millisecond)
	require.ElementsMatch(t, had, append(append([]int{}, one.adopts...), two.adopts...))
	require.NotEmpty(t, one.adopts)
	require.NotEmpty(t, two.adopts)
	for _, p := range had {
		require.Empty(t, w.owners(p), "its leases last")
	}
	w.calm(TTL)
	balanced(t, w)
	require.Len(t, append(one.adopts, two.adopts...), len(had), "nothing is adopted twice")
}

// TestOffersOfADeadNodeAreLookedForEverywhere: also where another one has the
// lease or had it last, since the dead node had fired what was planned there;
// by whoever fires there now, once.
func TestOffersOfADeadNodeAreLookedForEverywhere(t *testing.T) {
	w := newWorld()
	first, second, third := w.join(), w.join(), w.join()
	w.calm(plansLast + TTL)
	all := make([]int, domain.Partitions)
	for p := range all {
		all[p] = p
	}
	w.kill(first)
	w.calm(2 * LookEvery)
	require.NotEmpty(t, second.adopts, "it fires for the first one")
	w.kill(second)
	w.calm(2 * LookEvery)
	require.ElementsMatch(t, all, third.offers[second.id], "its leases, and those of the first one, last")

	fourth := w.join()
	w.calm(plansLast + TTL + Grace)
	balanced(t, w)
	require.ElementsMatch(t, all, third.offers[second.id], "once")
	w.kill(fourth)
	w.calm(2 * LookEvery)
	require.ElementsMatch(t, all, third.offers[fourth.id], "where it holds the lease itself, too")

	frozen := w.join()
	w.calm(plansLast + TTL + Grace)
	for range 2 {
		delete(third.offers, frozen.id)
		frozen.frozen = true
		w.calm(2 * TTL)
		require.ElementsMatch(t, all, third.offers[frozen.id])
		frozen.frozen = false
		w.calm(plansLast + TTL + Grace)
		balanced(t, w)
	}
}

// TestWhatAFormerHolderPlannedIsAdopted when it dies soon after it gave a
// partition up: nobody else would fire that.
func TestWhatAFormerHolderPlannedIsAdopted(t *testing.T) {
	for name, end := range map[string]func(*world, *node){
		"killed":  func(w *world, n *node) { w.kill(n) },
		"stopped": func(w *world, n *node) { n.queue = n.machine.Step(w.now, Stop{}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			former := w.join()
			w.calm(2 * TTL)
			heir := w.join()
			w.calm(Grace + LookEvery)
			held := heir.machine.Held(w.now)
			require.Len(t, held, domain.Partitions/2)
			require.Empty(t, heir.adopts, "it still fires")
			end(w, former)
			w.calm(TTL + 2*LookEvery)
			require.Len(t, heir.machine.Held(w.now), domain.Partitions)
			require.Len(t, heir.adopts, domain.Partitions, "those it had, and those it has now, once each")

			again := w.join()
			w.calm(plansLast + Grace)
			heir.adopts = nil
			w.kill(again)
			w.calm(2 * TTL)
			require.Len(t, heir.adopts, domain.Partitions/2, "what was planned long before is over")
		})
	}
}

// TestWhatWasPlannedTwoHoldersAgoIsAdopted: whoever got a partition from the
// dead one looks after its plans, also after having passed the partition on.
func TestWhatWasPlannedTwoHoldersAgoIsAdopted(t *testing.T) {
	w := newWorld()
	first := w.join()
	w.calm(2 * TTL)
	second := w.join()
	w.calm(Grace + LookEvery)
	got := second.machine.Held(w.now)
	require.Len(t, got, domain.Partitions/2)
	third := w.join()
	w.calm(3 * LookEvery)
	passedOn := 0
	for _, h := range got {
		if owners := w.owners(h.Partition); len(owners) == 1 && owners[0] == third {
			passedOn++
		}
	}
	require.NotZero(t, passedOn)
	second.adopts, third.adopts = nil, nil
	w.kill(first)
	w.calm(Grace + 2*LookEvery)
	for _, h := range got {
		require.Contains(t, second.adopts, h.Partition)
	}
}

// TestAFrozenNodeIsReplaced though its session stands: what it had planned is
// fired by others once two renewals are missing, its partitions move when its
// leases have run out, and it hears the news before it trusts again.
func TestAFrozenNodeIsReplaced(t *testing.T) {
	w := newWorld()
	frozen, other := w.join(), w.join()
	w.calm(2 * TTL)
	held := len(frozen.machine.Held(w.now))
	require.Equal(t, 32, held)
	other.adopts = nil
	frozen.frozen = true
	w.calm(SilentAfter - RenewEvery)
	require.Empty(t, other.adopts)
	w.calm(RenewEvery + LookEvery)
	require.Len(t, other.adopts, held)
	require.Len(t, other.machine.Held(w.now), domain.Partitions-held, "its leases last")
	w.calm(TTL - SilentAfter + LookEvery)
	require.Len(t, other.machine.Held(w.now), domain.Partitions)
	require.Len(t, other.adopts, held, "once")
	require.Empty(t, frozen.machine.Held(w.now))
	frozen.frozen = false
	w.calm(3 * TTL)
	balanced(t, w)
}

// TestAStandstillMovesNothing: after the database was away, everybody gets
// the time to renew.
func TestAStandstillMovesNothing(t *testing.T) {
	w := newWorld()
	w.join()
	w.join()
	w.join()
	w.calm(2 * TTL)
	w.moved = [domain.Partitions]int{}
	w.down = true
	for end := w.now + 5*TTL; w.now < end; w.now += 10 * time.Millisecond {
		for _, n := range w.nodes {
			w.step(n)
		}
	}
	require.Empty(t, w.nodes[0].machine.Held(w.now))
	w.calm(Grace)
	require.Equal(t, [domain.Partitions]int{}, w.moved)
	balanced(t, w)
}

// TestAClockSetBackBlocksNobody: leases that seem to last for minutes are
// taken over once they have not been renewed for long enough.
func TestAClockSetBackBlocksNobody(t *testing.T) {
	w := newWorld()
	victim, _ := w.join(), w.join()
	w.calm(2 * TTL)
	w.kill(victim)
	w.clock = w.clock.Add(-5 * time.Minute)
	w.calm(TTL)
	require.Len(t, w.nodes[1].machine.Held(w.now), domain.Partitions/2, "the other one's may be renewed yet")
	w.calm(3 * TTL)
	balanced(t, w)
}

// TestTrustIsCountedFromTheSending: an answer that took long is worth less,
// and one that took longer than the lease nothing.
func TestTrustIsCountedFromTheSending(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		holds bool
	}{"quick": {0, true}, "slow": {TTL - Margin - 1, true}, "too slow": {TTL - Margin, false}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			n := w.join()
			w.step(n) // the ticker
			w.step(n) // renew: sent
			w.step(n) // done
			w.step(n) // heard: acquire
			for range 2 {
				w.step(n) // sent, done
			}
			sent := w.now
			w.now += c.takes
			w.step(n)
			require.Equal(t, c.holds, len(n.machine.Held(w.now)) == domain.Partitions)
			require.Empty(t, n.machine.Held(sent+TTL-Margin))

			w.calm(LookEvery)
			require.Len(t, n.machine.Held(w.now), domain.Partitions)
			for _, ok := n.call.(Renew); !ok; _, ok = n.call.(Renew) {
				w.now += 10 * time.Millisecond
				w.step(n)
			}
			sent = n.sent
			w.step(n)
			w.now = sent + c.takes
			w.step(n)
			require.Equal(t, c.holds, len(n.machine.Held(w.now)) == domain.Partitions)
			require.Empty(t, n.machine.Held(sent+TTL-Margin))
		})
	}
}

// TestALostAnswerIsNoLostPartition: what was acquired or released without our
// hearing of it shows in the table.
func TestALostAnswerIsNoLostPartition(t *testing.T) {
	w := newWorld()
	n := w.join()
	for range 6 {
		w.step(n)
	}
	require.IsType(t, Acquire{}, n.call)
	require.True(t, n.done)
	w.lose(n)
	require.Empty(t, n.machine.Held(w.now))
	w.calm(2 * RenewEvery)
	require.Len(t, n.machine.Held(w.now), domain.Partitions)
	for p := range w.rows {
		require.EqualValues(t, 1, w.rows[p].Term, "not acquired again")
	}
	other := w.join()
	for done := false; !done; {
		w.now += 10 * time.Millisecond
		w.step(other)
		w.step(n)
		_, release := n.call.(Release)
		done = release && n.done
	}
	w.lose(n)
	w.calm(TTL)
	balanced(t, w)
	for p := range n.machine.tenures {
		require.Zero(t, n.machine.tenures[p].releasing)
	}
}

// TestAnotherTermOfOursIsNotTheOneWeHold: others have had the partition in
// between, and what was planned under the old term is over.
func TestAnotherTermOfOursIsNotTheOneWeHold(t *testing.T) {
	w := newWorld()
	n := w.join()
	w.calm(2 * TTL)
	require.Len(t, n.machine.Held(w.now), domain.Partitions)
	w.rows[5].Term += 2
	w.calm(2 * RenewEvery)
	for _, h := range n.machine.Held(w.now) {
		require.Equal(t, w.rows[h.Partition].Term, h.Term)
	}
	require.Len(t, n.machine.Held(w.now), domain.Partitions)
}

// TestAStopEndsThoughItsAnswerIsLost, and gives back what was acquired meanwhile.
func TestAStopEndsThoughItsAnswerIsLost(t *testing.T) {
	w := newWorld()
	n := w.join()
	w.calm(TTL)
	require.False(t, n.machine.Stopped())
	n.queue = n.machine.Step(w.now, Stop{})
	require.Empty(t, n.machine.Held(w.now), "at once")
	for range 5 { // what changed, then the release
		w.step(n)
	}
	require.IsType(t, Release{}, n.call)
	require.True(t, n.done)
	w.lose(n)
	require.False(t, n.machine.Stopped())
	w.calm(2 * LookEvery)
	require.True(t, n.machine.Stopped())
	for p := range w.rows {
		require.True(t, w.rows[p].Until.IsZero())
		require.Empty(t, w.rows[p].BootID)
	}

	late := w.join()
	for range 6 {
		w.step(late)
	}
	require.IsType(t, Acquire{}, late.call)
	require.True(t, late.done)
	late.machine.Step(w.now, Stop{})
	require.True(t, late.machine.Stopped(), "it knows of nothing")
	w.step(late)
	require.False(t, late.machine.Stopped())
	w.calm(2 * LookEvery)
	require.True(t, late.machine.Stopped())
	for p := range w.rows {
		require.True(t, w.rows[p].Until.IsZero())
	}
}

// TestANodeThatNoExecutorReachesPlansNothing while others are reached.
func TestANodeThatNoExecutorReachesPlansNothing(t *testing.T) {
	w := newWorld()
	one, two := w.join(), w.join()
	w.calm(2 * TTL)
	balanced(t, w)
	one.sessions = 3
	w.calm(TTL)
	require.Len(t, one.machine.Held(w.now), domain.Partitions)
	require.Empty(t, two.machine.Held(w.now))
	two.sessions = 1
	w.calm(TTL)
	balanced(t, w)
	one.adopts, two.adopts = nil, nil
	one.sessions = 0
	w.calm(RenewEvery + 2*LookEvery)
	require.Len(t, two.machine.Held(w.now), domain.Partitions)
	require.Len(t, two.adopts, domain.Partitions, "it cannot fire what it had planned")
	one.sessions, two.sessions = 0, 0
	w.calm(TTL)
	balanced(t, w)
}
