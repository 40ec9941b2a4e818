//go:build failpoints

package journal

import "github.com/carillon-sched/carillon/proto/failpoint"

const failpoints = true

// pointOf names the failpoints of a record: NAME.before-write, .before-fsync
// and .after-fsync. What nobody waits for is not synced, and passes them all.
func pointOf(k Kind) string {
	switch k {
	case Accepted:
		return "journal-accepted"
	case Granted:
		return "journal-granted"
	case Done:
		return "journal-done"
	case Settled:
		return "journal-settled"
	}
	return "journal-other"
}

func hitAll(points []string, when string) {
	for _, p := range points {
		failpoint.Hit(p + when)
	}
}
