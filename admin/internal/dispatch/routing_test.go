package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// seat is a candidate as a table has it.
type seat struct {
	id     domain.InstanceID
	free   int
	name   string
	labels map[string]string
	load   Load
}

func seats(list ...seat) (out []Target) {
	for _, s := range list {
		if s.name == "" {
			s.name = fmt.Sprint("host-", s.id)
		}
		out = append(out, &instance{id: s.id, slots: s.free, traits: Traits{s.name, s.labels}, load: s.load})
	}
	return out
}

// choice1 is the whole decision without its effects; 0 = nobody.
func choice1(e domain.Execution, spec domain.JobSpec, in rankInput, targets []Target) domain.InstanceID {
	all := new(chooser).candidates(&e, &spec, targets, nil)
	in.routing = spec.Routing
	if spec.Routing == domain.RouteConsistentHash {
		in.key = hashKey(&e, &spec)
	}
	rank(all, targets, in)
	if at := pick(all, pinned(&e, &spec)); at >= 0 {
		return all[at].id
	}
	return 0
}

func selector(t require.TestingT, text string) domain.Selector {
	s, err := domain.ParseSelector(text)
	require.NoError(t, err)
	return s
}

func TestStrategies(t *testing.T) {
	three := []seat{{id: 30, free: 1}, {id: 10, free: 1}, {id: 20, free: 1}}
	full := func(ids ...domain.InstanceID) []seat {
		out := slices.Clone(three)
		for i := range out {
			if slices.Contains(ids, out[i].id) {
				out[i].free = 0
			}
		}
		return out
	}
	loads := func(a, b, c Load) []seat {
		return []seat{{id: 10, free: 1, load: a}, {id: 20, free: 1, load: b}, {id: 30, free: 1, load: c}}
	}
	tried := domain.Execution{Delays: []domain.Delay{{Instance: 10, Reason: domain.ReasonOfferRefused}}}
	for name, c := range map[string]struct {
		routing domain.Routing
		seats   []seat
		in      rankInput
		run     domain.Execution
		want    domain.InstanceID
	}{
		"first is the oldest":                     {domain.RouteFirst, three, rankInput{}, domain.Execution{}, 10},
		"first waits for a full one":              {domain.RouteFirst, full(10), rankInput{}, domain.Execution{}, 0},
		"first stays after a refusal":             {domain.RouteFirst, three, rankInput{}, tried, 10},
		"last is the youngest":                    {domain.RouteLast, three, rankInput{}, domain.Execution{}, 30},
		"last waits for a full one":               {domain.RouteLast, full(30), rankInput{}, domain.Execution{}, 0},
		"failover is the oldest":                  {domain.RouteFailover, three, rankInput{}, domain.Execution{}, 10},
		"failover waits for a full one":           {domain.RouteFailover, full(10), rankInput{}, domain.Execution{}, 0},
		"failover moves on after a refusal":       {domain.RouteFailover, three, rankInput{}, tried, 20},
		"failover moves on past a full one":       {domain.RouteFailover, full(20), rankInput{}, tried, 30},
		"failover comes back when others cannot":  {domain.RouteFailover, full(20, 30), rankInput{}, tried, 10},
		"busy over is the oldest with room":       {domain.RouteBusyOver, full(10), rankInput{}, domain.Execution{}, 20},
		"busy over avoids who refused":            {domain.RouteBusyOver, three, rankInput{}, tried, 20},
		"round robin goes on":                     {domain.RouteRoundRobin, three, rankInput{last: 10}, domain.Execution{}, 20},
		"round robin goes around":                 {domain.RouteRoundRobin, three, rankInput{last: 30}, domain.Execution{}, 10},
		"round robin goes on from one that left":  {domain.RouteRoundRobin, three, rankInput{last: 15}, domain.Execution{}, 20},
		"round robin passes over a full one":      {domain.RouteRoundRobin, full(20), rankInput{last: 10}, domain.Execution{}, 30},
		"least frequently used":                   {domain.RouteLeastFrequentlyUsed, three, rankInput{recent: ids(10, 10, 20, 30, 30)}, domain.Execution{}, 20},
		"least frequently used, ties by age":      {domain.RouteLeastFrequentlyUsed, three, rankInput{recent: ids(10, 20, 30, 10, 20, 30)}, domain.Execution{}, 30},
		"least frequently used prefers a new one": {domain.RouteLeastFrequentlyUsed, three, rankInput{recent: ids(10, 30, 10)}, domain.Execution{}, 20},
		"least recently used":                     {domain.RouteLeastRecentlyUsed, three, rankInput{recent: ids(20, 20, 10, 30, 10, 20)}, domain.Execution{}, 30},
		"least recently used prefers a new one":   {domain.RouteLeastRecentlyUsed, three, rankInput{recent: ids(20, 10, 20)}, domain.Execution{}, 30},
		"least recently used passes over full":    {domain.RouteLeastRecentlyUsed, full(30), rankInput{recent: ids(20, 20, 10, 30)}, domain.Execution{}, 10},
		"least loaded by slots":                   {domain.RouteLeastLoaded, loads(Load{Slots: 500}, Load{Slots: 250}, Load{Slots: 300}), rankInput{}, domain.Execution{}, 20},
		"least loaded by CPU where that is more":  {domain.RouteLeastLoaded, loads(Load{Slots: 500}, Load{Slots: 250, CPU: 900}, Load{Slots: 300}), rankInput{}, domain.Execution{}, 30},
		"least loaded takes turns among equals":   {domain.RouteLeastLoaded, loads(Load{CPU: 12}, Load{CPU: 3}, Load{CPU: 40}), rankInput{last: 20}, domain.Execution{}, 30},
		"least loaded by memory among equals":     {domain.RouteLeastLoaded, loads(Load{Memory: 900}, Load{Memory: 300}, Load{Memory: 900}), rankInput{}, domain.Execution{}, 20},
		"nobody there":                            {domain.RouteRandom, nil, rankInput{}, domain.Execution{}, 0},
		"all full":                                {domain.RouteRandom, full(10, 20, 30), rankInput{}, domain.Execution{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, choice1(c.run, domain.JobSpec{Routing: c.routing}, c.in, seats(c.seats...)))
		})
	}
}

func ids(list ...domain.InstanceID) []domain.InstanceID { return list }

func TestLabelsComposeWithStrategies(t *testing.T) {
	all := seats(
		seat{id: 10, free: 1, labels: map[string]string{"zone": "us"}},
		seat{id: 20, free: 1, labels: map[string]string{"zone": "eu", "spot": ""}},
		seat{id: 30, free: 1, labels: map[string]string{"zone": "eu"}},
		seat{id: 40, labels: map[string]string{"zone": "eu", "gpu": "a100"}},
	)
	for name, c := range map[string]struct {
		routing         domain.Routing
		require, prefer string
		want            domain.InstanceID
	}{
		"required":                          {domain.RouteFirst, "zone=eu", "", 20},
		"required, from the other end":      {domain.RouteLast, "zone=eu, !gpu", "", 30},
		"several terms":                     {domain.RouteBusyOver, "zone in (eu, cn), !spot", "", 30},
		"nobody has them":                   {domain.RouteBusyOver, "zone=cn", "", 0},
		"preferred":                         {domain.RouteBusyOver, "", "!spot, zone=eu", 30},
		"preferred ones are full":           {domain.RouteBusyOver, "", "gpu", 10},
		"preferred among required":          {domain.RouteRoundRobin, "zone=eu", "!spot", 30},
		"first of the preferred, and waits": {domain.RouteFirst, "", "gpu", 0},
	} {
		t.Run(name, func(t *testing.T) {
			spec := domain.JobSpec{Routing: c.routing, Require: selector(t, c.require), Prefer: selector(t, c.prefer)}
			require.Equal(t, c.want, choice1(domain.Execution{}, spec, rankInput{}, all))
		})
	}
}

// fleet1 draws instances with different ids.
func fleet1(t *rapid.T) []seat {
	known := map[domain.InstanceID]bool{}
	var out []seat
	for range rapid.IntRange(0, 12).Draw(t, "instances") {
		s := seat{
			id: domain.InstanceID(rapid.Int64Range(1, 1<<62).Draw(t, "id")), free: rapid.IntRange(-1, 3).Draw(t, "free"),
			labels: map[string]string{"zone": rapid.SampledFrom([]string{"eu", "us"}).Draw(t, "zone")},
			load:   Load{Slots: rapid.IntRange(0, 1000).Draw(t, "slots"), CPU: rapid.IntRange(0, 2000).Draw(t, "cpu"), Memory: rapid.IntRange(0, 1000).Draw(t, "memory")},
		}
		if !known[s.id] {
			known[s.id], out = true, append(out, s)
		}
	}
	return out
}

// TestWhoeverIsChosenCanTakeIt: no strategy takes an instance that is full or
// lacks a label, and none but the pinned ones leaves room unused.
func TestWhoeverIsChosenCanTakeIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet := fleet1(t)
		spec := domain.JobSpec{
			Routing: rapid.SampledFrom(domain.Routings).Draw(t, "routing"),
			Require: selector(t, rapid.SampledFrom([]string{"", "zone=eu", "zone!=eu"}).Draw(t, "require")),
			Prefer:  selector(t, rapid.SampledFrom([]string{"", "zone=us"}).Draw(t, "prefer")),
		}
		run := domain.Execution{JobID: 7}
		in := rankInput{random: rapid.Uint64().Draw(t, "random")}
		for _, s := range fleet {
			if rapid.Bool().Draw(t, "recent") {
				in.recent, in.last = append(in.recent, s.id), s.id
			}
			if rapid.IntRange(0, 3).Draw(t, "refused") == 0 {
				run.Delays = append(run.Delays, domain.Delay{Instance: s.id})
			}
		}
		got := choice1(run, spec, in, seats(fleet...))
		room := 0
		for _, s := range fleet {
			fits := s.free > 0 && spec.Require.Matches(s.labels)
			if fits {
				room++
			}
			if s.id == got && !fits {
				t.Fatalf("%s chose instance %d, which cannot take it", spec.Routing, got)
			}
		}
		if got == 0 && room > 0 && !pinned(&run, &spec) {
			t.Fatalf("%s chose nobody of %d with room", spec.Routing, room)
		}
		slices.Reverse(fleet)
		if again := choice1(run, spec, in, seats(fleet...)); again != got {
			t.Fatalf("%s chose %d, and %d when the sessions stood in another order", spec.Routing, got, again)
		}
	})
}

// TestKeysStayWhereTheyAre: who leaves takes its own keys along and no other,
// who joins gets keys for itself only, and each has about its share.
func TestKeysStayWhereTheyAre(t *testing.T) {
	const keys = 1200
	owners := func(list []seat) []string {
		targets, names := seats(list...), map[domain.InstanceID]string{}
		for _, x := range targets {
			names[x.InstanceID()] = x.Traits().Name
		}
		out := make([]string, keys)
		for k := range out {
			run := domain.Execution{Input: fmt.Appendf(nil, `{"customer":{"id":%d}}`, k)}
			out[k] = names[choice1(run, domain.JobSpec{Routing: domain.RouteConsistentHash, RoutingKey: "/customer/id"}, rankInput{}, targets)]
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "instances")
		seed := rapid.Int().Draw(t, "seed")
		var fleet []seat
		for i := range n {
			fleet = append(fleet, seat{id: domain.InstanceID(100 + i), free: 1, name: fmt.Sprintf("worker-%d-%d", seed, i)})
		}
		before := owners(fleet)
		gone := rapid.IntRange(0, n-1).Draw(t, "leaves")
		after := owners(slices.Delete(slices.Clone(fleet), gone, gone+1))
		moved := 0
		for k := range before {
			if before[k] == fleet[gone].name {
				moved++
			} else if before[k] != after[k] {
				t.Fatalf("key %d moved from %s to %s, and neither left", k, before[k], after[k])
			}
		}
		if share := keys / n; moved < share*6/10 || moved > share*14/10 {
			t.Fatalf("%d of %d keys moved, 1/%d of them are %d", moved, keys, n, share)
		}
		restarted := slices.Clone(fleet)
		restarted[gone].id = 999 // a new process under the same name
		if again := owners(restarted); !slices.Equal(before, again) {
			t.Fatal("keys moved with a restart")
		}
	})
}

// TestInstancesOfOneNameShareTheKeys: two processes with one name are two.
func TestInstancesOfOneNameShareTheKeys(t *testing.T) {
	all := seats(seat{id: 10, free: 1, name: "same"}, seat{id: 20, free: 1, name: "same"})
	got := map[domain.InstanceID]int{}
	for k := range 1000 {
		got[choice1(domain.Execution{JobID: domain.JobID(k)}, domain.JobSpec{Routing: domain.RouteConsistentHash}, rankInput{}, all)]++
	}
	require.InDelta(t, 500, got[10], 100)
	require.Equal(t, 1000, got[10]+got[20])
}

// TestHashKey: the job is the key where the input has none.
func TestHashKey(t *testing.T) {
	spec := domain.JobSpec{RoutingKey: "/customer/id", Input: []byte(`{"customer":{"id":"7"}}`)}
	byJob := hashKey(&domain.Execution{JobID: 5}, &domain.JobSpec{})
	require.Equal(t, hashOf("7"), hashKey(&domain.Execution{JobID: 5}, &spec), "the job's input")
	require.Equal(t, hashOf("8"), hashKey(&domain.Execution{JobID: 5, Input: []byte(`{"customer":{"id":8}}`)}, &spec), "the run's own")
	for _, input := range []string{`{}`, `{"customer":null}`, `[1]`, `not JSON`, ``} {
		require.Equal(t, byJob, hashKey(&domain.Execution{JobID: 5, Input: []byte(input)}, &spec), input)
	}
	require.NotEqual(t, byJob, hashKey(&domain.Execution{JobID: 6}, &domain.JobSpec{}))
}

// TestHashesNeverChange: keys would move with an upgrade.
func TestHashesNeverChange(t *testing.T) {
	require.Equal(t, uint64(0x98fcf162c4874ee9), hashOf("customer-7"))
	require.Equal(t, uint64(0xe220a8397b1dcdaf), mix(0), "the first number of SplitMix64 with the seed 0")
}

// TestTurnsOverSeveralNodes: every node counts the turns of the runs that it
// sends; between two readings they do not know of each other. What each instance
// gets differs by less than one turn for each node.
func TestTurnsOverSeveralNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, n := rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 7).Draw(t, "instances")
		var fleet []seat
		for i := range n {
			fleet = append(fleet, seat{id: domain.InstanceID(1 + i), free: 1})
		}
		targets := seats(fleet...)
		known := make([]uses, nodes)
		got := map[domain.InstanceID]int{}
		runs := rapid.SliceOfN(rapid.IntRange(0, nodes-1), 1, 60).Draw(t, "by node")
		for at, node := range runs {
			in := rankInput{random: uint64(at)}
			in.last, _ = known[node].of(7, domain.RouteRoundRobin)
			id := choice1(domain.Execution{}, domain.JobSpec{Routing: domain.RouteRoundRobin}, in, targets)
			known[node].took(7, domain.RouteRoundRobin, id)
			got[id]++
		}
		low, high := len(runs), 0
		for _, s := range fleet {
			low, high = min(low, got[s.id]), max(high, got[s.id])
		}
		if high-low > nodes {
			t.Fatalf("from %d to %d of %d runs on %d nodes", low, high, len(runs), nodes)
		}
	})
}

func TestUsesAreCountedAndTakenBack(t *testing.T) {
	var u uses
	u.took(1, domain.RouteRoundRobin, 10)
	u.took(1, domain.RouteRoundRobin, 20)
	u.undo(1, domain.RouteRoundRobin, 20, 10)
	last, _ := u.of(1, domain.RouteRoundRobin)
	require.Equal(t, domain.InstanceID(10), last)
	u.took(1, domain.RouteRoundRobin, 30)
	u.undo(1, domain.RouteRoundRobin, 20, 10)
	last, _ = u.of(1, domain.RouteRoundRobin)
	require.Equal(t, domain.InstanceID(30), last, "somebody took the next turn meanwhile")

	for range domain.RoutingWindow + 20 {
		u.took(2, domain.RouteLeastRecentlyUsed, 10)
	}
	u.took(2, domain.RouteLeastRecentlyUsed, 20)
	_, recent := u.of(2, domain.RouteLeastRecentlyUsed)
	require.Len(t, recent, domain.RoutingWindow)
	require.Equal(t, ids(20, 10), recent[:2])
	u.undo(2, domain.RouteLeastRecentlyUsed, 20, 0)
	_, recent = u.of(2, domain.RouteLeastRecentlyUsed)
	require.NotContains(t, recent, domain.InstanceID(20))
}

// TestWhenRowsAreRead: the node that holds a job's partition counts by itself.
func TestWhenRowsAreRead(t *testing.T) {
	var u uses
	now := time.Now()
	planned := domain.Execution{JobID: 1, Cause: domain.CauseSchedule}
	asked := domain.Execution{JobID: 1, Cause: domain.CauseManual}
	require.True(t, u.stale(&planned, domain.RouteRoundRobin, now), "never seen")
	u.took(1, domain.RouteRoundRobin, 10)
	require.False(t, u.stale(&planned, domain.RouteRoundRobin, now))
	require.True(t, u.stale(&asked, domain.RouteRoundRobin, now), "another node may have sent one")
	u.learn(nil, nil, false, now)
	u.turns.put(1, lastUse{10, now})
	require.False(t, u.stale(&asked, domain.RouteRoundRobin, now.Add(readFor-1)))
	require.True(t, u.stale(&asked, domain.RouteRoundRobin, now.Add(readFor)))
	require.True(t, u.stale(&planned, domain.RouteLeastRecentlyUsed, now))
	u.windows.put(1, &window{readAt: now})
	require.False(t, u.stale(&planned, domain.RouteLeastRecentlyUsed, now))
	require.True(t, u.stale(&planned, domain.RouteLeastRecentlyUsed, now.Add(readFor)))
}

func TestAgingKeepsWhatIsUsed(t *testing.T) {
	var a aging[int]
	for i := range 3 * maxTurns {
		a.put(domain.JobID(i), i)
		if _, ok := a.get(5); i >= 5 && !ok {
			t.Fatalf("job 5 was forgotten after %d", i)
		}
	}
	require.LessOrEqual(t, len(a.young)+len(a.old), 2*maxTurns)
	_, ok := a.get(6)
	require.False(t, ok)
}
