package dispatch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// pooledTarget has so many slots free, and a load that grows with each run.
type pooledTarget struct {
	benchTarget
	free, load int
}

func (t *pooledTarget) Free() int  { return t.free }
func (t *pooledTarget) Load() Load { return Load{Slots: t.load} }

// TestAPoolChoosesAsTheStrategiesDo compares a pool with the choice among all
// candidates, run by run, until all instances are full.
func TestAPoolChoosesAsTheStrategiesDo(t *testing.T) {
	for _, routing := range domain.Routings {
		t.Run(string(routing), func(t *testing.T) {
			for seed := range uint64(60) {
				r := rand.New(rand.NewPCG(seed, 1))
				comparePool(t, r, routing, 1+r.IntN(30), r.IntN(3) == 0)
			}
		})
	}
}

func comparePool(t *testing.T, r *rand.Rand, routing domain.Routing, n int, one bool) {
	one = one && routing.Pinned()
	var targets []Target
	for i := range n {
		targets = append(targets, &pooledTarget{
			benchTarget: benchTarget{id: domain.InstanceID(10 + 3*i), traits: Traits{Name: fmt.Sprint("worker-", i%7)}},
			free:        r.IntN(4), load: r.IntN(3) * 100,
		})
	}
	r.Shuffle(n, func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	p := newPool(targets)
	for {
		in := rankInput{routing: routing, random: r.Uint64(), key: r.Uint64()}
		if r.IntN(4) > 0 {
			in.last = domain.InstanceID(9 + r.IntN(3*n+3))
			for range r.IntN(40) {
				in.recent = append(in.recent, domain.InstanceID(10+3*r.IntN(n)))
			}
		}
		all := make([]candidate, n)
		for i, target := range targets {
			all[i] = candidate{at: i, id: target.InstanceID(), free: target.Free()}
		}
		rank(all, targets, in)
		want := pick(all, one)
		got, tied := p.pick(in, one)
		if want < 0 {
			require.Equal(t, int32(-1), got)
			return
		}
		require.GreaterOrEqual(t, got, int32(0))
		best := p.targets[got].(*pooledTarget)
		chosen := &all[want]
		left := p.passed.Passed()
		if tied {
			left = left.AsTied()
		}
		for i := range all { // by lot: any of those that are as good
			drawn := routing == domain.RouteRandom || in.last == 0 && (routing == domain.RouteRoundRobin || routing == domain.RouteLeastLoaded) || byUse(routing)
			if all[i].id == best.id && all[i].free > 0 && (drawn && (all[i].rank == chosen.rank || routing == domain.RouteRandom || routing == domain.RouteRoundRobin)) {
				chosen = &all[i]
			}
		}
		require.Equal(t, chosen.id, best.id, "last %d, recent %v", in.last, in.recent)
		require.Equal(t, passed(all, best.id, false), left)
		best.free--
		best.load += 50
		p.took(got)
	}
}
