package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestPick(t *testing.T) {
	for name, c := range map[string]struct {
		routing      domain.Routing
		free         []int
		turn, random uint64
		want         int
	}{
		"nobody there":                          {domain.RouteFirst, nil, 0, 0, -1},
		"all full":                              {domain.RouteRandom, []int{0, 0, -1}, 0, 1, -1},
		"first takes the first":                 {domain.RouteFirst, []int{1, 5}, 9, 9, 0},
		"first passes over a full one":          {domain.RouteFirst, []int{0, 5}, 0, 0, 1},
		"round robin by turn":                   {domain.RouteRoundRobin, []int{1, 1, 1}, 4, 0, 1},
		"round robin passes over a full one":    {domain.RouteRoundRobin, []int{1, 0, 1}, 4, 0, 2},
		"round robin goes around":               {domain.RouteRoundRobin, []int{1, 0, 0}, 2, 0, 0},
		"random by number":                      {domain.RouteRandom, []int{1, 1, 1}, 0, 5, 2},
		"random does not shift with round turn": {domain.RouteRandom, []int{1, 1, 1}, 1, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, pick(c.routing, c.free, c.turn, c.random))
		})
	}
}

func TestRoundRobinTurnsAreConsecutivePerJob(t *testing.T) {
	var tr turns
	a, b := tr.take(1, 77), tr.take(2, 5)
	for i := uint64(1); i < 5; i++ {
		require.Equal(t, a+i, tr.take(1, 9))
		require.Equal(t, b+i, tr.take(2, 9))
	}
}
