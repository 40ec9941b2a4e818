package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// upgrade is a cluster on its way between two versions.
type upgrade struct {
	*stage
	old, current release
	// lives of each node, by name and in order: which version from when on.
	lives   map[string][]life
	drains  []float64 // ms from SIGTERM to the process's end
	returns []float64 // ms from readiness until all executors have a session
}

type life struct {
	from    verify.Time
	version string
}

// f05 replaces the nodes of a cluster one after another by the next version,
// back, and forth again, while the other nodes work on and most runs are in
// the middle of their handlers. The schema is the next version's from the first
// replacement on. One executor changes its SDK, the other one keeps the old.
func f05(ctx context.Context, s *stage) error {
	u := &upgrade{stage: s, current: release{version: newVersion, carillon: s.set.binary, witness: s.set.self}, lives: map[string][]life{}}
	var same bool
	var err error
	if u.old, same, err = s.previous(ctx); err != nil {
		return err
	}
	err = s.open(ctx, fleetPlan{admins: pick(s.set, 3, 2), executors: 2, binary: u.old.carillon,
		prepare: func(_ int, c *lab.Command) { c.Program = u.old.witness }})
	if err != nil {
		return err
	}
	for _, a := range s.fleet.Admins {
		u.lives[a.Name] = []life{{verify.At(s.from), u.old.version}}
	}
	before, err := s.migrations(ctx)
	if err != nil {
		return err
	}
	if err := s.begin(ctx, mixedJobs(s.rate())); err != nil {
		return err
	}
	if err := u.replaceAll(ctx); err != nil {
		return err
	}
	after, err := s.migrations(ctx)
	if err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	s.result.Figures["migrationsUnderOldNodes"] = after - before
	return errors.Join(err, u.judge(j, same, after-before))
}

// replaceAll goes forth, back and forth. In its short form only one node goes
// back.
func (u *upgrade) replaceAll(ctx context.Context) error {
	admins := u.fleet.Admins
	if err := u.replaceNodes(ctx, u.current, admins); err != nil {
		return err
	}
	// What nodes of this version hold under the load.
	if err := u.rest(ctx); err != nil {
		return err
	}
	if err := u.replaceExecutor(ctx, u.executors[0]); err != nil {
		return err
	}
	back := pick(u.set, admins, admins[:1])
	for range u.rounds(5, 1) {
		if err := u.replaceNodes(ctx, u.old, back); err != nil {
			return err
		}
		if err := u.replaceNodes(ctx, u.current, back); err != nil {
			return err
		}
	}
	return nil
}

// replaceNodes stops each node as an operator does, and starts it with another
// version's program.
func (u *upgrade) replaceNodes(ctx context.Context, by release, admins []*lab.Admin) error {
	for _, a := range admins {
		err := u.fault("replaced by "+by.version, a.Name, func() error {
			began := time.Now()
			if err := stopCleanly(a.Process()); err != nil {
				return err
			}
			u.drains = append(u.drains, ms(time.Since(began)))
			a.Use(by.carillon)
			u.lives[a.Name] = append(u.lives[a.Name], life{verify.At(time.Now()), by.version})
			if err := a.Start(ctx); err != nil {
				return err
			}
			ready := time.Now()
			if err := u.connected(ctx, a); err != nil {
				return err
			}
			u.returns = append(u.returns, ms(time.Since(ready)))
			return u.says(ctx, a, by.version)
		})
		if err == nil {
			err = u.works(ctx, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// replaceExecutor gives an executor the SDK of this version.
func (u *upgrade) replaceExecutor(ctx context.Context, w *witnessProcess) error {
	err := u.fault("replaced by "+newVersion, w.name, func() error {
		if err := stopCleanly(w.Process); err != nil {
			return err
		}
		w.command.Program = u.current.witness
		return u.startExecutor(w)
	})
	if err != nil {
		return err
	}
	for _, a := range u.fleet.Admins {
		if err := u.connected(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// stopCleanly asks a process to end; it has to do so by itself, and well.
func stopCleanly(p *lab.Process) error {
	p.Stop()
	if code := p.ExitCode(); code != 0 {
		return fmt.Errorf("%s did not end by itself and well after SIGTERM: exit code %d (log: %s)", p.Name, code, p.LogFile)
	}
	return nil
}

// connected waits until every executor has a session to the node.
func (u *upgrade) connected(ctx context.Context, a *lab.Admin) error {
	return lab.Until(ctx, time.Minute, "sessions of "+a.Name, func(ctx context.Context) error {
		m, err := a.API.Metrics(ctx)
		if err == nil && int(m["carillon_sessions"]) != len(u.executors) {
			err = fmt.Errorf("there are %.0f", m["carillon_sessions"])
		}
		return err
	})
}

// works waits until runs that the node has granted since it was replaced have
// ended on every executor.
func (u *upgrade) works(ctx context.Context, a *lab.Admin) error {
	db, err := u.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	lives := u.lives[a.Name]
	since := int64(lives[len(lives)-1].from) / 1000 // the table has milliseconds
	return lab.Until(ctx, time.Minute, "runs through "+a.Name, func(ctx context.Context) error {
		var n int
		err := db.QueryRowContext(ctx, `SELECT COUNT(DISTINCT e.instance_id) FROM executions e JOIN nodes n ON n.id = e.node_id
			WHERE n.name = ? AND e.granted_at > ? AND e.state >= 10`, a.Name, since).Scan(&n)
		if err == nil && n < len(u.executors) {
			err = fmt.Errorf("on %d executors", n)
		}
		return err
	})
}

// says checks that the node is of that version: else nothing was replaced.
func (u *upgrade) says(ctx context.Context, a *lab.Admin, version string) error {
	cluster, err := a.API.GetCluster(ctx)
	if err != nil {
		return err
	}
	for _, n := range cluster.Value.Nodes {
		if n.Current && n.Version == version {
			return nil
		}
	}
	return fmt.Errorf("%s does not say that it is of version %q: %+v", a.Name, version, cluster.Value.Nodes)
}

// migrations returns how many files the schema was made of.
func (s *stage) migrations(ctx context.Context) (n int, err error) {
	db, err := s.db.Open()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, "SELECT COUNT(DISTINCT version_id) FROM goose_db_version WHERE version_id > 0").Scan(&n)
	return n, err
}

// versionAt is what the node was at that time.
func (u *upgrade) versionAt(node string, at verify.Time) string {
	lives := u.lives[node]
	for i := len(lives) - 1; i > 0; i-- {
		if at >= lives[i].from {
			return lives[i].version
		}
	}
	return u.old.version
}

func (u *upgrade) judge(j *judged, same bool, migrated int) error {
	var wrong problems
	starts := map[string]int{}
	for _, r := range j.runs {
		starts[r.Key]++
		if row := j.rows[r.Key]; row.State != "succeeded" {
			wrong.add("runs that a drain has cost", "run %s is %s (%s)", r.Key, row.State, row.Reason)
		}
		if r.Cancelled {
			wrong.add("handlers that were cancelled", "run %s on %s", r.Key, r.Boot)
		}
	}
	for key, n := range starts {
		if n > 1 {
			wrong.add("runs that were started more than once", "run %s: %d times", key, n)
		}
	}
	// Who granted what, and on whose SDK it ran: each pair has to be seen.
	pairs := map[string]int{}
	sdkNew := u.sdkChanged(j)
	for _, r := range j.runs {
		sdk := u.old.version
		if executorOf(r) == u.executors[0].name && r.Start >= sdkNew {
			sdk = u.current.version
		}
		row := j.rows[r.Key]
		pairs[u.versionAt(row.Node, row.GrantedAt)+"→"+sdk]++
	}
	for _, node := range []string{oldVersion, newVersion} {
		for _, sdk := range []string{oldVersion, newVersion} {
			if pairs[node+"→"+sdk] == 0 {
				wrong.add("pairs of versions not seen", "no run was granted by a node of %q to an executor of %q", node, sdk)
			}
		}
	}
	drain, back := summary(slices.Clone(u.drains)), summary(slices.Clone(u.returns))
	figures := u.result.Figures
	figures["drainMs"], figures["reconnectMs"], figures["runsByNodeAndExecutor"], figures["sameSource"] = drain, back, pairs, same
	source := "previous version from " + u.old.commit[:min(8, len(u.old.commit))] + fmt.Sprintf(", %d migrations under its nodes", migrated)
	if same {
		source = "no other version here: the previous one is this one's source under another name"
	}
	u.figure("%d runs by nodes of the previous version, %d by the next, 0 doubled or failed by a drain; lateness %s (goal 1 s); drained in max %.0f ms, executors back after p99 %.0f ms (%s)",
		sum(pairs, oldVersion+"→"), sum(pairs, newVersion+"→"), j.inside, drain.Max, back.P99, source)
	u.goal("max", j.inside.Max, 1000, "ms")
	return wrong.err()
}

// sdkChanged is when the first executor's new process first ran something.
func (u *upgrade) sdkChanged(j *judged) verify.Time {
	first := map[string]verify.Time{} // by boot
	for _, r := range j.runs {
		if at, ok := first[r.Boot]; executorOf(r) == u.executors[0].name && (!ok || r.Start < at) {
			first[r.Boot] = r.Start
		}
	}
	var last verify.Time
	for _, at := range first {
		last = max(last, at)
	}
	return last
}

func sum(counts map[string]int, prefix string) (n int) {
	for key, c := range counts {
		if strings.HasPrefix(key, prefix) {
			n += c
		}
	}
	return n
}
