package explain

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// passedBy is what a choice among looked instances leaves: those, and up to
// looked the lowest ids, were looked at, and full had no room.
func passedBy(looked int, full ...domain.InstanceID) domain.Passed {
	ids := slices.Clone(full)
	for id := domain.InstanceID(1); len(ids) < looked; id++ {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return domain.NewPassed(looked, func(i int) bool { return slices.Contains(full, ids[i]) }, func(i int) domain.InstanceID { return ids[i] })
}

func three() (out []domain.Instance) {
	labels := []map[string]string{{"zone": "eu"}, {"zone": "eu", "gpu": "a100"}, {"zone": "us"}}
	for i, name := range []string{"old", "middle", "young"} {
		out = append(out, domain.Instance{
			ID: domain.InstanceID(i + 1), Name: name, Handlers: []string{"reconcile"}, Labels: labels[i],
			ConnectedAt: at(-9000 + i), LeaseUntil: at(9000), Slots: 4,
		})
	}
	return out
}

func candidatesOf(t *testing.T, r Run) map[string]Candidate {
	s := *r.Spec
	s.Handler, r.Spec = "reconcile", &s
	r.Execution.FireAt, r.Now = fire, at(5000)
	out := map[string]Candidate{}
	for _, c := range r.Explain().Candidates {
		out[c.Name] = c
		require.NotEmpty(t, c.Text.En)
		require.NotEmpty(t, c.Text.Zh)
		require.NotContains(t, c.Text.Zh, "instance")
		require.NotContains(t, c.Text.En, " or ", "one reason")
		require.NotContains(t, c.Text.Zh, "或")
	}
	return out
}

// TestWhyOthersWereNotChosen: one reason each, with figures.
func TestWhyOthersWereNotChosen(t *testing.T) {
	uses := func(ids ...domain.InstanceID) (out []domain.Use) { // newest first
		for i, id := range ids {
			out = append(out, domain.Use{Instance: id, OfferedAt: at(-1000 * (i + 1))})
		}
		return out
	}
	sent := domain.Execution{State: domain.Succeeded, Instance: 2, OfferedAt: at(1), Input: []byte(`{"customer":{"id":42}}`)}
	for name, c := range map[string]struct {
		routing domain.Routing
		key     string
		passed  domain.Passed
		choice  domain.Choice
		who     string
		verdict Verdict
		en      string
	}{
		"full": {domain.RouteRoundRobin, "", passedBy(3, 3), domain.Choice{Uses: uses(2)}, "young", Full,
			"It had no room for the run, which the node that sent it knew from the instance itself; rows count 0 runs on its 4 slots."},
		"turn, used": {domain.RouteRoundRobin, "", passedBy(3), domain.Choice{Uses: uses(1, 3)}, "young", NotChosen,
			"Its turn came later: last used 2026-11-21T01:59:58.000Z, and after the run before this one, on old, the chosen one is next."},
		"turn, not used": {domain.RouteRoundRobin, "", passedBy(3), domain.Choice{Uses: uses(1)}, "young", NotChosen,
			"Its turn came later: the run before this one went to old at 2026-11-21T01:59:59.000Z, and after it the chosen one is next."},
		"turn, first run": {domain.RouteRoundRobin, "", passedBy(3), domain.Choice{}, "young", NotChosen,
			"Its turn came later: the job had no earlier run to go on from, and a lot decided who is first."},
		"turn, out of reach": {domain.RouteRoundRobin, "", passedBy(2), domain.Choice{Uses: uses(3)}, "old", NotConnected,
			"The node that sent the run had no working connection to it."},
		"turn, another count": {domain.RouteRoundRobin, "", passedBy(3), domain.Choice{Uses: uses(3)}, "old", NotChosen,
			"It had room, and by the rows it came before the chosen one; the node that sent the run had not counted the job's newest runs yet, and its own count named the other one."},
		"turn, nothing kept": {domain.RouteRoundRobin, "", 0, domain.Choice{Uses: uses(3), Running: map[domain.InstanceID]int{1: 4}}, "old", Full,
			"It was full: 4 of 4 slots were taken."},
		"turn, nothing kept and nothing known": {domain.RouteRoundRobin, "", 0, domain.Choice{Uses: uses(3), Running: map[domain.InstanceID]int{1: 3}}, "old", NotChosen,
			"By the rows it came before the chosen one, with 3 of 4 slots taken; why it was passed over was not kept: a version of Carillon sent the run that did not do so."},
		"wished": {domain.RouteRoundRobin, "", passedBy(3).AsWished(), domain.Choice{Uses: uses(3)}, "old", NotChosen,
			"Somebody had asked for the chosen one when the run was created."},
		"frequency": {domain.RouteLeastFrequentlyUsed, "", passedBy(3), domain.Choice{Uses: uses(1, 1, 2, 1)}, "old", NotChosen,
			"Another one had fewer runs: of the job's last 4 it had got 3, the chosen one 1."},
		"frequency, equal": {domain.RouteLeastFrequentlyUsed, "", passedBy(3), domain.Choice{Uses: uses(1, 2)}, "old", NotChosen,
			"Both had got 1 of the job's last 2 runs. It was used more recently: at 2026-11-21T01:59:59.000Z, the chosen one at 2026-11-21T01:59:58.000Z."},
		"recency": {domain.RouteLeastRecentlyUsed, "", passedBy(3), domain.Choice{Uses: uses(3, 3)}, "young", NotChosen,
			"It was used at 2026-11-21T01:59:59.000Z, and the chosen one in none of the job's last 2 runs."},
		"recency, lot": {domain.RouteLeastRecentlyUsed, "", passedBy(3), domain.Choice{Uses: uses(3)}, "old", NotChosen,
			"Neither it nor the chosen one was used in the job's last 1 runs, and the lot fell on the other."},
		"load": {domain.RouteLeastLoaded, "", passedBy(3), domain.Choice{Running: map[domain.InstanceID]int{1: 3, 2: 1}}, "old", NotChosen,
			"Another one had fewer runs: 3 of 4 slots taken against 1 of 4."},
		"load, equal": {domain.RouteLeastLoaded, "", passedBy(3).AsTied(), domain.Choice{Running: map[domain.InstanceID]int{1: 1, 2: 1}}, "old", NotChosen,
			"Others were loaded as little (1 of 4 slots taken against 1 of 4), and it was the turn of the chosen one."},
		"load, by CPU": {domain.RouteLeastLoaded, "", passedBy(3), domain.Choice{}, "old", NotChosen,
			"The chosen one was less loaded by its CPU and memory, which its heartbeats tell and no row keeps; by rows: 0 of 4 slots taken against 0 of 4."},
		"lot":                {domain.RouteRandom, "", passedBy(3), domain.Choice{}, "old", NotChosen, "The lot fell on another one."},
		"lot, out of reach":  {domain.RouteRandom, "", passedBy(2), domain.Choice{}, "old", NotChosen, "The lot fell on another one. (The node that sent the run had 2 of the 3 within reach.)"},
		"lot, full":          {domain.RouteRandom, "", passedBy(3, 1), domain.Choice{}, "old", Full, "It had no room for the run, which the node that sent it knew from the instance itself; rows count 0 runs on its 4 slots."},
		"hash":               {domain.RouteConsistentHash, "", passedBy(3), domain.Choice{}, "old", NotChosen, "It does not have the job, which is the run's key: the hash of the instances' names gives it to the chosen one."},
		"hash of a key":      {domain.RouteConsistentHash, "/customer/id", passedBy(3), domain.Choice{}, "old", NotChosen, `It does not have the run's key "42" (/customer/id of its input): the hash of the instances' names gives it to the chosen one.`},
		"first":              {domain.RouteFirst, "", passedBy(3), domain.Choice{}, "young", NotChosen, "For the routing strategy first the chosen one comes before it: that one connected at 2026-11-21T01:59:51.001Z, this one at 2026-11-21T01:59:51.002Z."},
		"busy over, full":    {domain.RouteBusyOver, "", passedBy(3, 1), domain.Choice{Running: map[domain.InstanceID]int{1: 4}}, "old", Full, "It was full: 4 of 4 slots were taken."},
		"last, out of reach": {domain.RouteLast, "", passedBy(2), domain.Choice{}, "young", NotConnected, "The node that sent the run had no working connection to it."},
	} {
		t.Run(name, func(t *testing.T) {
			e := sent
			e.Passed = c.passed
			got := candidatesOf(t, Run{Execution: e, Spec: &domain.JobSpec{Routing: c.routing, RoutingKey: c.key}, Instances: three(), Choice: c.choice})
			require.Equal(t, Chosen, got["middle"].Verdict)
			require.Equal(t, c.verdict, got[c.who].Verdict)
			require.Equal(t, c.en, got[c.who].Text.En)
		})
	}
	for _, routing := range domain.Routings { // whatever is known, it is one reason
		for _, passed := range []domain.Passed{0, passedBy(3), passedBy(3, 1), passedBy(2), passedBy(1), passedBy(3).AsWished(), passedBy(3).AsTied()} {
			for _, u := range [][]domain.Use{nil, uses(1), uses(2, 1), uses(3, 3, 1)} {
				e := sent
				e.Passed = passed
				require.Len(t, candidatesOf(t, Run{Execution: e, Spec: &domain.JobSpec{Routing: routing}, Instances: three(), Choice: domain.Choice{Uses: u}}), 3)
			}
		}
	}
}

// TestWhoCouldNotTakeIt: what keeps an instance out comes before its room and its turn.
func TestWhoCouldNotTakeIt(t *testing.T) {
	sent := domain.Execution{State: domain.Succeeded, Instance: 2, OfferedAt: at(1), Passed: passedBy(1)}
	instances := three()
	instances[0].Draining, instances[0].DrainingAt = true, at(-3000)
	instances[2].LeaseUntil, instances[2].LastSeenAt = at(-100), at(-15_000)
	got := candidatesOf(t, Run{Execution: sent, Spec: spec, Instances: instances})
	require.Equal(t, Candidate{1, "old", Draining, Text{"It was leaving since 2026-11-21T01:59:57.000Z and takes nothing new.", "自 2026-11-21T01:59:57.000Z 起正在退出，不再接收新任务。"}}, got["old"])
	require.Equal(t, Silent, got["young"].Verdict)
	require.Equal(t, "Its lease ran out at 2026-11-21T01:59:59.900Z; it was last heard at 2026-11-21T01:59:45.000Z.", got["young"].Text.En)

	instances = three()
	instances[0].Draining, instances[0].DrainingAt = true, at(100) // later than the offer
	sent.Passed = passedBy(3)
	require.Equal(t, NotChosen, candidatesOf(t, Run{Execution: sent, Spec: spec, Instances: instances})["old"].Verdict)

	require1, err := domain.ParseSelector("zone=eu")
	require.NoError(t, err)
	prefer, err := domain.ParseSelector("gpu")
	require.NoError(t, err)
	sent.Passed = passedBy(2)
	got = candidatesOf(t, Run{Execution: sent, Spec: &domain.JobSpec{Routing: domain.RouteRoundRobin, Require: require1, Prefer: prefer}, Instances: three()})
	require.Equal(t, LabelMismatch, got["young"].Verdict)
	require.Equal(t, "It does not meet the labels that the job requires: zone=eu.", got["young"].Text.En)
	require.Equal(t, "It does not meet the preferred labels (gpu), and the chosen one does.", got["old"].Text.En)

	sent.Bound, sent.Passed = 2, passedBy(1)
	require.Equal(t, "The shard is for instance middle alone.", candidatesOf(t, Run{Execution: sent, Spec: spec, Instances: three()})["old"].Text.En)

	never := domain.Execution{State: domain.Missed, Reason: domain.ReasonNoExecutor, FinishedAt: at(1000)}
	got = candidatesOf(t, Run{Execution: never, Spec: spec, Instances: three(), Choice: domain.Choice{Running: map[domain.InstanceID]int{1: 4}}})
	require.Equal(t, "It was full: 4 of 4 slots were taken.", got["old"].Text.En)
	require.Equal(t, "It had no room as long as the run waited.", got["young"].Text.En)
}
