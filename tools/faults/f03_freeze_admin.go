package main

import (
	"context"
	"errors"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// f03 freezes an admin node, once at any instant and once between the last
// statement of a claim and its COMMIT, while it holds row locks, for each
// length of pause. The others have to go on with the jobs that they plan; what
// the frozen node planned and plans waits until its silence is noticed and its
// lease runs out, and is measured by itself. What it still believes when it
// wakes up must start nothing.
func f03(ctx context.Context, s *stage) error {
	cutters := []*proxy.CommitCutter{{}, {}, {}}
	_, via := s.databasePaths(3, func(i int) *proxy.CommitCutter { return cutters[i] })
	if err := s.open(ctx, fleetPlan{admins: 3, executors: 2, database: via}); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	pauses := pick(s.set, []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, time.Minute},
		[]time.Duration{time.Second, 5 * time.Second})
	if s.set.onMySQL() {
		pauses = []time.Duration{8 * time.Second} // it ends a silent transaction after five
	}
	withLocks := 0
	var freezes []freeze
	for i := range s.rounds(2*len(pauses), 2*len(pauses)) {
		pause, locks := pauses[i/2%len(pauses)], i%2 == 1
		a, cutter := s.fleet.Admins[i%len(s.fleet.Admins)], cutters[i%len(s.fleet.Admins)]
		held, f, err := s.freeze(ctx, a, cutter, pause, locks)
		if err != nil {
			return err
		}
		freezes = append(freezes, f)
		if held {
			withLocks++
		}
		if err := wait(ctx, 3*time.Second); err != nil {
			return err
		}
		if err := s.revive(ctx, a); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j != nil {
		s.result.Figures["frozenWithLocks"] = withLocks
		own, others := splitLateness(j, freezes)
		s.result.Figures["othersMs"], s.result.Figures["frozenNodesOwnMs"] = others, own
		s.figure("the other nodes' jobs %s (goal 250 ms, 3 s); the frozen node's own %s; %d times frozen with locks held; %d offers of a dead hand given back",
			others, own, withLocks, refences(j))
		s.goals(others, 250, 3000)
	}
	if err == nil && withLocks == 0 {
		err = errors.New("no admin could be frozen while it held locks: not enough evidence")
	}
	return err
}

// freeze is one pause of a node, with the jobs that it planned when it began.
type freeze struct {
	from, to verify.Time
	jobs     map[string]bool
}

// freeze halts the node for a while; locks: while it holds row locks on
// triggers, if it comes to that within 20 s. held tells whether it did.
func (s *stage) freeze(ctx context.Context, a *lab.Admin, cutter *proxy.CommitCutter, pause time.Duration, locks bool) (held bool, f freeze, err error) {
	kind := "sigstop " + pause.String()
	if locks {
		kind += " with row locks"
		commit := cutter.Hold("triggers")
		defer commit.Release() // after it has woken up
		select {
		case <-commit.Caught():
			held = true
		case <-time.After(20 * time.Second):
		case <-ctx.Done():
		}
	}
	err = s.fault(kind, a.Name, func() (err error) {
		f.from = verify.At(time.Now())
		if err := a.Process().Freeze(); err != nil {
			return err
		}
		f.jobs, err = s.jobsOf(ctx, a.Name)
		err = errors.Join(err, wait(ctx, time.Until(f.from.Std().Add(pause))), a.Process().Thaw())
		f.to = verify.At(time.Now())
		return err
	})
	return held, f, err
}

// jobsOf are the jobs whose partitions the node holds. A node that was just
// frozen holds them yet.
func (s *stage) jobsOf(ctx context.Context, node string) (map[string]bool, error) {
	db, err := s.db.Open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT t.job_id FROM triggers t JOIN partition_leases p ON p.part = t.part"+
		" JOIN nodes n ON n.boot_id = p.boot_id WHERE n.name = ?", node)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		out[id] = true
	}
	return out, rows.Err()
}

// splitLateness sorts the first starts of fire times within the freezes, and
// within a lease after them, by whether the frozen node planned the job.
func splitLateness(j *judged, freezes []freeze) (own, others lateness) {
	first := map[string]verify.Run{}
	for _, r := range j.runs {
		if before, ok := first[r.Key]; !ok || r.Start < before.Start {
			first[r.Key] = r
		}
	}
	const after = verify.Time(2_000_000) // a lease, in microseconds
	var mine, theirs []float64
	for _, r := range first {
		for _, f := range freezes {
			if r.FireAt < f.from || r.FireAt > f.to+after {
				continue
			}
			late := float64(r.Start-r.FireAt) / 1000
			if f.jobs[r.Job] {
				mine = append(mine, late)
			} else {
				theirs = append(theirs, late)
			}
			break
		}
	}
	return summary(mine), summary(theirs)
}

// revive starts a node again that ended by itself, as its supervisor would: a
// node that was silent for longer than its place on the list ends.
func (s *stage) revive(ctx context.Context, a *lab.Admin) error {
	if !a.Process().Ended() {
		return nil
	}
	say("%s ended by itself and is started again", a.Name)
	return a.Start(ctx)
}

// refences counts the runs that were offered more often than they were
// attempted: offers that came to nothing because somebody else was quicker.
func refences(j *judged) int {
	n := 0
	for _, r := range j.rows {
		if r.Fence > int64(r.Attempt) {
			n++
		}
	}
	return n
}
