//go:build failpoints

package session

import "github.com/carillon-sched/carillon/proto/failpoint"

const failpoints = true

// pointsOf names the failpoints of what is sent together: each NAME.before and
// NAME.after.
func pointsOf(answers, started, results int) (points []string) {
	if answers > 0 {
		points = append(points, "send-answers")
	}
	if started > 0 {
		points = append(points, "send-started")
	}
	if results > 0 {
		points = append(points, "send-results")
	}
	return points
}

func hitAll(points []string, when string) {
	for _, p := range points {
		failpoint.Hit(p + when)
	}
}
