package main

import (
	"fmt"
	"strings"
)

// Goal is a figure to reach, and the next one beyond it.
type Goal struct {
	Figure, Stretch string
	// reached is 0 for neither, 1 for the figure, 2 for the stretch too.
	reached int
}

// Reached says how far a result came: nothing, the figure, or the stretch too.
func (g Goal) Reached() int { return g.reached }

// level is the number of conditions that hold, up to the first that does not.
func level(conditions ...bool) (n int) {
	for _, ok := range conditions {
		if !ok {
			break
		}
		n++
	}
	return n
}

// GoalOf is what a result should be, for a machine with two cores and the
// database on it; false where there is no goal, or no figure to compare.
func (r *Report) GoalOf(one *Result) (Goal, bool) {
	if one.Failed != "" {
		return Goal{}, false
	}
	switch {
	case one.Scenario == "throughput" && one.Throughput != nil:
		return one.rateGoal(), true
	case one.Scenario == "steady" && one.Lateness != nil:
		return one.steadyGoal(), true
	case (one.Scenario == "burst" || one.Scenario == "edges") && one.Lateness != nil:
		return one.burstGoal()
	case one.Scenario == "overload" && one.Overload != nil:
		done, again := one.Throughput.FloorPercent, one.Overload.OnTimeAgain
		return Goal{"90 %, on time after 60 s", "95 %, 10 s", level(one.notWell() == nil, done >= 95 && again <= 10)}, true
	case one.Scenario == "idle" && len(one.Processes) > 0:
		return one.idleGoal()
	case one.Scenario == "dispatch" && one.RoundTrip != nil:
		return Goal{"p50 200 µs", "", level(one.RoundTrip.P50 <= 200)}, true
	case one.Scenario == "dispatch" && one.Throughput != nil:
		return Goal{"50,000/s", "150,000/s", level(one.Throughput.PerSecond >= 50_000, one.Throughput.PerSecond >= 150_000)}, true
	case one.Scenario == "cancel" && one.Elapsed != nil:
		return Goal{"1 s", "p99 100 ms", level(one.Elapsed.Max <= 1000, one.Elapsed.P99 <= 100)}, true
	case one.Scenario == "tail" && one.Elapsed != nil:
		return Goal{"p99 1 s", "p99 400 ms", level(one.Elapsed.P99 <= 1000, one.Elapsed.P99 <= 400)}, true
	case one.Scenario == "alert-latency" && one.Elapsed != nil:
		return Goal{"max 2 s", "p99 1.25 s", level(one.Elapsed.Max <= 2000, one.Elapsed.P99 <= 1250)}, true
	case one.Scenario == "sessions":
		return one.sessionsGoal()
	case one.Scenario == "timers-create" && one.Throughput != nil:
		return one.timersGoal(), true
	case one.Scenario == "timers-fire" && one.Variant == timersEvenly && one.Lateness != nil:
		return Goal{"p99 100 ms", "", level(one.Lateness.P99 <= 100)}, true
	case one.Scenario == "timers-failover" && one.Lateness != nil:
		return Goal{"max 5 s", "", level(one.Lateness.Max <= millisOf(failoverWithin))}, true
	case one.Scenario == "timers-callbacks" && one.Lateness != nil:
		return Goal{"p99 100 ms", "", level(one.Lateness.P99 <= 100)}, true
	case one.Scenario == "scale" && one.Rows >= 10_000_000 && one.Elapsed != nil: // reads
		return Goal{"p99 50 ms", "p99 15 ms", level(one.Elapsed.P99 <= 50, one.Elapsed.P99 <= 15)}, true
	case one.Scenario == "scale" && one.Rows >= 10_000_000:
		return r.rowsGoal(one)
	}
	return Goal{}, false
}

func (r *Result) timersGoal() Goal {
	figure, text := 20_000.0, "20,000/s"
	switch {
	case strings.HasPrefix(r.Variant, timersSingle):
		figure, text = 2000, "2,000/s"
	case strings.HasPrefix(r.Variant, timersCancelled):
		figure, text = 5000, "5,000/s"
	}
	return Goal{text, "", level(r.Throughput.PerSecond >= figure)}
}

func (r *Result) rateGoal() Goal {
	rate, percent := r.Throughput.PerSecond, r.Throughput.FloorPercent
	switch {
	case r.Database == SQLite:
		return Goal{"5,000/s", "10,000/s", level(rate >= 5000, rate >= 10_000)}
	case r.Variant == variantOf(handlerIdempotent):
		return Goal{"12,000/s, 35 %", "20,000/s, 50 %", level(rate >= 12_000 && percent >= 35, rate >= 20_000 && percent >= 50)}
	default:
		return Goal{"8,000/s", "15,000/s", level(rate >= 8000, rate >= 15_000)}
	}
}

func (r *Result) steadyGoal() Goal {
	l, admin := r.Lateness, r.admin()
	return Goal{
		"8 / 25 / 250 ms; 40 %, 150 MiB", "p99 10 ms",
		level(l.P50 <= 8 && l.P99 <= 25 && l.Max <= 250 && admin.Core <= 40 && admin.RSS <= 150<<20, l.P99 <= 10),
	}
}

func (r *Result) burstGoal() (Goal, bool) {
	limit := map[int]float64{1000: 150, 5000: 600, 20_000: 2500}[r.Jobs]
	return Goal{
		fmt.Sprintf("p99 %.0f ms", limit), fmt.Sprintf("p99 %.0f ms", limit/2),
		level(r.Lateness.P99 <= limit, r.Lateness.P99 <= limit/2),
	}, limit > 0
}

func (r *Result) idleGoal() (Goal, bool) {
	admin := r.admin()
	switch r.Jobs {
	case 100_000:
		return Goal{"5 %, 150 MiB", "", level(admin.Core <= 5 && admin.RSS <= 150<<20)}, true
	case 1_000_000:
		return Goal{"15 %, 500 MiB", "", level(admin.Core <= 15 && admin.RSS <= 500<<20)}, true
	}
	return Goal{}, false
}

// sessionsGoal is for 5,000 instances.
func (r *Result) sessionsGoal() (Goal, bool) {
	switch {
	case r.Variant == variantHalfOpen && r.Elapsed != nil:
		return Goal{"8 s", "", level(r.Elapsed.Max <= 8000)}, true
	case r.Variant == variantReset && r.Elapsed != nil:
		return Goal{"at once (100 ms)", "", level(r.Elapsed.Max <= 100)}, true
	case r.Elapsed != nil:
		return Goal{"all in 15 s", "", level(r.Elapsed.Count > connectedSessions && r.Elapsed.Max <= 15_000)}, r.Elapsed.Count > connectedSessions
	case len(r.Processes) > 0 && r.Variant == fmt.Sprintf("%d idle instances", connectedSessions):
		admin := r.admin()
		// What they cost: the node itself has a goal of its own (idle).
		return Goal{"5 %, + 250 MB", "", level(admin.Core <= 5 && admin.RSS-admin.Alone <= 250e6)}, true
	}
	return Goal{}, false
}

// rowsGoal compares with the empty table.
func (r *Report) rowsGoal(one *Result) (Goal, bool) {
	change, ok := r.ChangeOf(one)
	return Goal{"within 10 %", "within 3 %", level(change <= 10, change <= 3)}, ok
}

// ChangeOf is by how many percent a result of scale is worse than that of one
// node with nothing else in the tables, finished runs than that measured in turn
// with them: fewer fires per second, or a later p99. It is negative where it is
// better.
func (r *Report) ChangeOf(one *Result) (percent float64, ok bool) {
	if one.Scenario != "scale" {
		return 0, false
	}
	empty := "admin nodes: 1"
	if one.Rows > 0 {
		empty = variantEmpty
	}
	for i := range r.Results {
		base := &r.Results[i]
		switch {
		case base.Scenario != "scale" || base.Database != one.Database || base.Failed != "":
		case one.Throughput != nil && base.Variant == empty+", throughput" && base.Throughput != nil:
			return 100 * (1 - one.Throughput.PerSecond/base.Throughput.PerSecond), true
		case one.Throughput == nil && one.Lateness != nil && base.Variant == empty+", steady" && base.Lateness != nil:
			return 100 * (one.Lateness.P99/base.Lateness.P99 - 1), true
		}
	}
	return 0, false
}

// admin is the busiest admin node.
func (r *Result) admin() (most Process) {
	for _, p := range r.Processes {
		if p.Core > most.Core && len(p.Name) > 5 && p.Name[:5] == "admin" {
			most = p
		}
	}
	return most
}
