package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// f44 ends the database server, by SIGKILL and by an ordinary stop, while callers set,
// move and cancel timers, and create, edit, pause and run jobs, and acknowledge incidents.
// After each restart the database is asked for everything that an answer said was done.
func f44(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 1}); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()/4); err != nil {
		return err
	}
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	callers := make([]*caller, 6)
	incidents, err := s.incidents(ctx, 3*len(callers))
	if err != nil {
		return err
	}
	for i := range callers {
		callers[i] = &caller{s: s, api: s.tenant.api(i), name: fmt.Sprintf("caller-%d", i), incidents: incidents, held: map[string]claim{}}
	}
	var wrong problems
	for round := range s.rounds(30, 8) {
		until, stop := context.WithCancel(ctx)
		group, gctx := errgroup.WithContext(until)
		for _, c := range callers {
			group.Go(func() error { return c.call(gctx) })
		}
		err := wait(ctx, 300*time.Millisecond+rand.N(500*time.Millisecond))
		kind, end := "sigkill", s.server.Kill
		if round%2 == 1 {
			kind, end = "stop", s.server.Stop
		}
		err = errors.Join(err, s.fault(kind, "database server", func() error { return errors.Join(end(), s.server.Start()) }), wait(ctx, time.Second))
		stop()
		if err := errors.Join(err, group.Wait()); err != nil {
			return err
		}
		for _, c := range callers {
			if err := c.check(ctx, db, &wrong); err != nil {
				return err
			}
		}
	}
	answers, unknown := map[string]int{}, 0
	for _, c := range callers {
		unknown += c.unknown
		for what, n := range c.answers {
			answers[what] += n
		}
	}
	for _, what := range []string{"set", "moved", "cancelled", "created", "edited", "paused", "resumed", "run", "acknowledged"} {
		if answers[what] == 0 {
			wrong.add("kinds of calls that no answer came to", "%s", what)
		}
	}
	if s.unjudged, err = unknownJobs(ctx, db); err != nil {
		return err
	}
	_, err = s.finish(ctx)
	s.result.Figures["answers"], s.result.Figures["withoutAnswer"] = answers, unknown
	s.figure("%d answers that the database was asked about, %d calls without one: %s", total(answers), unknown, strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(answers), "map["), "]"))
	return errors.Join(err, wrong.err())
}

// unknownJobs are jobs of callers, whose answers may be lost, and jobs of timers. The
// history does not tell of them.
func unknownJobs(ctx context.Context, db *sql.DB) (map[string]bool, error) {
	rows, err := db.QueryContext(ctx, "SELECT id FROM jobs WHERE name NOT LIKE 'steady-%' AND name <> 'canary'")
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

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// incidents opens incidents and returns their ids. Each belongs to an executor without an
// instance, and to a run that nothing takes.
func (s *stage) incidents(ctx context.Context, n int) (chan string, error) {
	api := s.tenant.api(0)
	for i := range n {
		executor, _, err := api.MakeExecutor(ctx, fmt.Sprintf("nobody-%02d", i))
		if err != nil {
			return nil, err
		}
		body := job{name: fmt.Sprintf("unserved-%02d", i), wait: time.Second}.withDefaults().body(executor)
		made, err := api.CreateJob(ctx, apiclient.CreateJobParams{AllowUnknownHandler: true}, body)
		if err == nil {
			_, err = api.RunJob(ctx, made.Value.ID, apiclient.RunJobParams{}, apiclient.RunRequest{})
		}
		if err != nil {
			return nil, err
		}
	}
	out := make(chan string, n)
	return out, lab.Until(ctx, time.Minute, "incidents", func(ctx context.Context) error {
		list, err := api.ListAlertIncidents(ctx, apiclient.ListAlertIncidentsParams{State: "open"})
		if err != nil {
			return err
		}
		if len(list.Value.Items) < n {
			return fmt.Errorf("%d of %d incidents are open", len(list.Value.Items), n)
		}
		for _, i := range list.Value.Items[:n] {
			out <- i.ID
		}
		return nil
	})
}

// claim is what an answer said: the statement has to find one row.
type claim struct {
	what, statement string
	args            []any
}

// caller makes calls one after the other and keeps what their answers said.
type caller struct {
	s         *stage
	api       *lab.API
	name      string
	incidents chan string
	n         int      // of the calls
	jobs      []string // created and known by an answer
	paused    bool     // the first of the jobs
	edits     int
	held      map[string]claim // by object
	pending   []string         // keys of timers that are set
	answers   map[string]int
	unknown   int // calls without an answer
}

// says keeps an answer. An error leaves open what became of the object.
func (c *caller) says(object string, err error, what, statement string, args ...any) bool {
	if err != nil {
		delete(c.held, object)
		c.unknown++
		return false
	}
	if c.answers == nil {
		c.answers = map[string]int{}
	}
	c.answers[what]++
	c.held[object] = claim{what, statement, args}
	return true
}

// call goes on until ctx ends. The last call may end without an answer.
func (c *caller) call(ctx context.Context) error {
	for ctx.Err() == nil {
		c.n++
		var err error
		switch c.n % 6 {
		case 0:
			err = c.createJob(ctx)
		case 1:
			err = c.setTimers(ctx)
		case 2:
			err = c.moveTimer(ctx)
		case 3:
			err = c.cancelTimers(ctx)
		case 4:
			err = c.changeJob(ctx)
		case 5:
			err = c.runJob(ctx)
			select {
			case id := <-c.incidents:
				_, err := c.api.AcknowledgeAlertIncident(ctx, id)
				c.says(id, err, "acknowledged", "SELECT 1 FROM alert_incidents WHERE id = ? AND state = 2", id)
			default:
			}
		}
		if p, ok := errors.AsType[*apiclient.Problem](err); ok && p.Status < 500 && p.Status != 429 {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if err != nil {
			_ = wait(ctx, 20*time.Millisecond) // its end is looked at above
		}
	}
	return nil
}

func (c *caller) setTimers(ctx context.Context) error {
	var body apiclient.SetTimersInputBody
	for i := range 10 {
		body.Timers = append(body.Timers, apiclient.TimerRequest{
			Executor: "witness", Handler: handlerTick, Key: fmt.Sprintf("%s-%d-%d", c.name, c.n, i), After: "2h",
		})
	}
	got, err := c.api.SetTimers(ctx, body)
	for i, t := range body.Timers {
		failed := err
		if err == nil && got.Value.Items[i].Outcome != "created" {
			failed = errors.New(got.Value.Items[i].Outcome)
		}
		if c.says(t.Key, failed, "set", "SELECT 1 FROM timers WHERE timer_key = ?", t.Key) {
			c.pending = append(c.pending, t.Key)
		}
	}
	return err
}

func (c *caller) moveTimer(ctx context.Context) error {
	if len(c.pending) == 0 {
		return nil
	}
	key := c.pending[rand.IntN(len(c.pending))]
	at := time.Now().Add(3*time.Hour + rand.N(time.Hour)).Truncate(time.Second)
	_, err := c.api.RescheduleTimer(ctx, "witness", handlerTick, key, apiclient.RescheduleTimerInputBody{At: stamp(at)})
	c.says(key, err, "moved", "SELECT 1 FROM timers WHERE timer_key = ? AND fire_at = ?", key, at.UnixMilli())
	return err
}

// cancelTimers cancels some at once or one alone.
func (c *caller) cancelTimers(ctx context.Context) error {
	n := min(len(c.pending), 1+4*(c.n/6%2))
	if n == 0 {
		return nil
	}
	keys := c.pending[:n]
	c.pending = c.pending[n:]
	cancelled := "SELECT 1 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM timers WHERE timer_key = ?)"
	if n == 1 {
		_, err := c.api.CancelTimer(ctx, "witness", handlerTick, keys[0])
		c.says(keys[0], err, "cancelled", cancelled, keys[0])
		return err
	}
	got, err := c.api.CancelTimers(ctx, apiclient.CancelTimersRequest{Executor: "witness", Handler: handlerTick, Keys: keys})
	for i, key := range keys {
		failed := err
		if err == nil && got.Value.Items[i].Outcome != "cancelled" {
			failed = errors.New(got.Value.Items[i].Outcome)
		}
		c.says(key, failed, "cancelled", cancelled, key)
	}
	return err
}

// createJob takes a name that no job has, so that a conflict is a wrong answer.
func (c *caller) createJob(ctx context.Context) error {
	name := fmt.Sprintf("%s-job-%d", c.name, c.n)
	id, err := c.api.MakeJob(ctx, job{name: name}.withDefaults().body(c.s.tenant.executorID))
	if c.says("job "+name, err, "created", "SELECT 1 FROM jobs WHERE id = ?", id) {
		c.jobs = append(c.jobs, id)
	}
	return err
}

// changeJob edits the first job of the caller, pauses it or lets it go on.
func (c *caller) changeJob(ctx context.Context) error {
	if len(c.jobs) == 0 {
		return nil
	}
	id := c.jobs[0]
	if c.edits++; c.edits%2 == 0 {
		body := job{name: c.name + "-first", timeout: time.Duration(c.edits) * time.Second}.withDefaults().body(c.s.tenant.executorID)
		got, err := c.api.UpdateJob(ctx, id, apiclient.UpdateJobParams{IfMatch: "*"}, body)
		c.says("revision "+id, err, "edited", "SELECT 1 FROM jobs WHERE id = ? AND revision = ?", id, got.Value.Revision)
		return err
	}
	var err error
	if c.paused {
		_, err = c.api.ResumeJob(ctx, id, apiclient.ResumeJobParams{})
		c.says("state "+id, err, "resumed", "SELECT 1 FROM jobs WHERE id = ? AND state = 1", id)
	} else {
		_, err = c.api.PauseJob(ctx, id, apiclient.PauseInputBody{})
		c.says("state "+id, err, "paused", "SELECT 1 FROM jobs WHERE id = ? AND state = 2", id)
	}
	c.paused = !c.paused
	return err
}

func (c *caller) runJob(ctx context.Context) error {
	if len(c.jobs) < 2 {
		return nil
	}
	run, err := c.api.RunNow(ctx, c.jobs[len(c.jobs)-1])
	c.says("run "+run, err, "run", "SELECT 1 FROM executions WHERE id = ?", run)
	return err
}

// check asks the database for everything that answers said.
func (c *caller) check(ctx context.Context, db *sql.DB, wrong *problems) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for object, said := range c.held {
		group.Go(func() error {
			var one int
			err := db.QueryRowContext(ctx, said.statement, said.args...).Scan(&one)
			if errors.Is(err, sql.ErrNoRows) {
				mu.Lock()
				defer mu.Unlock()
				wrong.add("answers that the database does not know", "%s: %s", object, said.what)
				return nil
			}
			return err
		})
	}
	return group.Wait()
}
