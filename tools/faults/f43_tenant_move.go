package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// moveSteps are those of carillon tenant move, and within which time each is killed
// after its beginning: less than it takes, for most of them.
var moveSteps = []struct {
	name   string
	within time.Duration
}{
	{"announce", time.Second},
	{"copy what has settled", 20 * time.Millisecond},
	{"copy what came meanwhile", 20 * time.Millisecond},
	{"wait for runs", time.Second},
	{"fence", time.Second},
	{"copy the rest", 20 * time.Millisecond},
	{"leave", 200 * time.Microsecond},
	{"take up", 4 * time.Millisecond},
	{"enable", time.Millisecond},
}

// abortedIn is the step after whose death the move is ended instead of gone on with.
const abortedIn = "fence"

// cell is a cluster of its own.
type cell struct {
	name  string
	fleet *lab.Fleet
	db    *lab.Database
	dsn   string // as --database takes it
}

// moving is a tenant that lives in one of two cells, with its load.
type moving struct {
	*stage
	at, other *cell
	tenant    *tenant
	killed    map[string]int // by the step that the process died in
}

// f43 moves a tenant under load from one cell to another. The process that moves it is
// killed in each of its steps, and begun again; once the move is ended, and begun anew.
func f43(ctx context.Context, s *stage) (err error) {
	number := func(n string) func(int) []string {
		return func(int) []string { return []string{"CARILLON_NODE_NUMBERS=" + n} }
	}
	if err := s.open(ctx, fleetPlan{admins: 1, env: number("1-511")}); err != nil {
		return err
	}
	first := &cell{name: "first", fleet: s.fleet, db: s.db}
	if first.dsn, err = s.dsn(ctx, 0); err != nil {
		return err
	}
	other := &cell{name: "other"}
	if other.db, err = lab.CreateDatabase(ctx, s.place(), "carillon_other"); err != nil {
		return err
	}
	if other.dsn, err = other.db.User(ctx, "admin_other", ""); err != nil {
		return err
	}
	other.fleet, err = lab.NewFleet(lab.Options{
		Dir: filepath.Join(s.dir, other.name), Binary: s.set.binary, DSN: func(int) string { return "mysql:" + other.dsn },
		Env: func(i int) []string {
			return append(number("512-1023")(i), "CARILLON_SEALING_KEY_FILE="+filepath.Join(s.dir, "sealing.key"))
		},
	})
	if err != nil {
		return err
	}
	defer other.fleet.Close() // before the server
	if _, err := other.fleet.AddAdmin(ctx); err != nil {
		return err
	}
	if err := errors.Join(first.knows(ctx, other), other.knows(ctx, first)); err != nil {
		return err
	}
	m := &moving{stage: s, at: first, other: other, killed: map[string]int{}}
	if err := m.fire(ctx); err != nil {
		return err
	}
	return m.play(ctx)
}

// knows writes down in a cell where another one is.
func (c *cell) knows(ctx context.Context, o *cell) error {
	operator, err := c.fleet.Admins[0].API.AsOperator(ctx, "admin", c.fleet.Password)
	if err != nil {
		return err
	}
	a := o.fleet.Admins[0]
	_, err = operator.SaveCell(ctx, o.name, apiclient.SaveCellInputBody{URL: a.API.Base, Executors: []string{a.Wire}})
	return err
}

// fire starts the tenant's load.
func (m *moving) fire(ctx context.Context) (err error) {
	if m.tenant, err = m.addTenant(ctx, "acme"); err != nil {
		return err
	}
	key := m.tenant.api(0).Token // moves with the tenant
	m.tenant.api = func(int) *lab.API { return m.at.fleet.Admins[0].API.As(key) }
	n, start := m.rate()/2, time.Now().Truncate(time.Second)
	jobs := workJobs(5, time.Second, 600, start)
	for i := range n {
		jobs = append(jobs, steadyJob(i, n, start))
	}
	if _, err := m.create(ctx, m.tenant, jobs); err != nil {
		return err
	}
	m.from = time.Now().Truncate(time.Second).Add(2 * time.Second)
	return waitUntil(ctx, m.from.Add(time.Second))
}

func (m *moving) play(ctx context.Context) error {
	began := verify.At(time.Now())
	for range m.rounds(4, 1) {
		if err := m.round(ctx); err != nil {
			return err
		}
	}
	undisturbed := verify.At(time.Now())
	if _, err := m.move(ctx, "", 0); err != nil {
		return err
	}
	if err := m.arrived(ctx); err != nil {
		return err
	}
	ended := verify.At(time.Now())
	to := time.Now().Truncate(time.Second)
	if err := m.pauseAll(ctx); err != nil {
		return err
	}
	m.db = m.at.db // all that it ever ran is there
	if err := m.ended(ctx, farFuture, settleLimit); err != nil {
		return err
	}
	j, err := m.judge(ctx, to)
	if j == nil {
		return err
	}
	longest, pause := j.pause(began, undisturbed), j.pause(undisturbed, ended)
	died := 0
	var words []string
	for _, step := range moveSteps {
		if n := m.killed[step.name]; n > 0 {
			died++
			words = append(words, fmt.Sprintf("%s %d", step.name, n))
		}
	}
	m.result.Figures["killedIn"], m.result.Figures["pauseWithDeathsMs"], m.result.Figures["pauseMs"] = m.killed, longest, pause
	m.figure("the process died %d times, within %d of %d steps (%s); nothing started for %.1f s at most meanwhile, and for %.1f s in a move without deaths; lateness %s",
		m.result.Injected, died, len(moveSteps), strings.Join(words, ", "), longest/1000, pause/1000, j.inside)
	return errors.Join(err, m.once(ctx, j, to))
}

// round moves the tenant once.
func (m *moving) round(ctx context.Context) error {
	done := false
	for _, step := range moveSteps {
		if done {
			break
		}
		err := m.fault("SIGKILL in: "+step.name, "tenant move", func() (err error) {
			done, err = m.move(ctx, step.name, rand.N(step.within))
			return err
		})
		if err == nil && step.name == abortedIn {
			if _, err = m.move(ctx, "", 0, "--abort"); err == nil {
				err = m.served(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
	if !done {
		if _, err := m.move(ctx, "", 0); err != nil {
			return err
		}
	}
	return m.arrived(ctx)
}

// arrived waits until the tenant's jobs have run for a while in the cell that it has
// moved to.
func (m *moving) arrived(ctx context.Context) error {
	m.at, m.other = m.other, m.at
	at := time.Now()
	if err := m.served(ctx); err != nil {
		return err
	}
	db, err := m.at.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	err = lab.Until(ctx, 20*time.Second, "the tenant's jobs run in the cell "+m.at.name, func(ctx context.Context) error {
		n := 0
		err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM executions WHERE tenant_id = ? AND granted_at > ?", m.tenant.id, at.UnixMilli()).Scan(&n)
		if err == nil && n == 0 {
			err = errors.New("none has started")
		}
		return err
	})
	if err != nil {
		return err
	}
	return wait(ctx, 2*time.Second)
}

// served waits until the tenant's cell serves it, and its executor is there.
func (m *moving) served(ctx context.Context) error {
	return m.tenant.api(0).Online(ctx, m.tenant.executorID, 1, time.Minute)
}

// move runs the process, and kills it so long after a step of it has begun; empty: not.
// done: it has ended by itself, well.
func (m *moving) move(ctx context.Context, step string, after time.Duration, more ...string) (done bool, err error) {
	args := append([]string{
		"tenant", "move", "acme", "--to", m.other.name, "--data", filepath.Join(m.dir, "mover"),
		"--database", "mysql:" + m.at.dsn, "--to-database", "mysql:" + m.other.dsn,
	}, more...)
	cmd := exec.CommandContext(ctx, m.set.binary, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	said, err := cmd.StderrPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	died, errText, watched := watchSteps(said, step, func() {
		time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // an error: it has ended already
	})
	ended := cmd.Wait()
	switch {
	case watched != nil:
		return false, watched
	case ended == nil:
		return true, nil
	case step != "" && cmd.ProcessState.ExitCode() < 0:
		m.killed[died]++
		return false, nil
	default:
		return false, fmt.Errorf("%s: %w: %s", strings.Join(append([]string{"tenant move"}, more...), " "), ended, errText)
	}
}

// watchSteps reads what the process says until it has ended, and calls kill when the
// step begins. It returns the step that it was in at the end, and the last lines.
func watchSteps(said io.Reader, step string, kill func()) (in, last string, err error) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		last = lines.Text()
		_, rest, found := strings.Cut(last, `msg="step of the move" step=`)
		if !found {
			continue
		}
		in, _, _ = strings.Cut(rest, " tenant=")
		if in = strings.Trim(in, `"`); in == step {
			kill()
		}
	}
	return in, last, lines.Err()
}

// once: each of the tenant's fire times has a run in one cell only. What the former
// cell has of it is what it had started before the move.
func (m *moving) once(ctx context.Context, j *judged, to time.Time) error {
	now, err := m.startedIn(ctx, m.at)
	if err != nil {
		return err
	}
	before, err := m.startedIn(ctx, m.other)
	if err != nil {
		return err
	}
	var wrong problems
	if len(before) == 0 || len(before) >= len(now) {
		wrong.add("cells that started nothing", "%d runs, of them %d in the former cell", len(now), len(before))
	}
	for _, r := range j.rows {
		if r.State == "missed" && r.FireAt < verify.At(to.Add(-time.Second)) { // later ones were perhaps waiting when the load was paused
			wrong.add("fire times that no cell has run", "run %s of job %s at %s: %s", r.Key, r.Job, r.FireAt.Std().Format(time.TimeOnly), r.Reason)
		}
	}
	for at, run := range before {
		if now[at] != run {
			wrong.add("fire times of which the cells know different runs", "job and time %s: %s and %s", at, run, now[at])
		}
	}
	return wrong.err()
}

// startedIn are the runs of the tenant that were started, by job and fire time, as a
// cell has them.
func (m *moving) startedIn(ctx context.Context, c *cell) (map[string]string, error) {
	db, err := c.db.Open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT CONCAT(job_id, ' ', fire_at), CONCAT(id, ' by fence ', fence, ' at ', granted_at) FROM executions WHERE tenant_id = ? AND granted_at > 0", m.tenant.id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var at, run string
		if err := rows.Scan(&at, &run); err != nil {
			return nil, err
		}
		out[at] = run
	}
	return out, rows.Err()
}
