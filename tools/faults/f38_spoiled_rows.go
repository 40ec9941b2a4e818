package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// victim is a job of which somebody spoils rows.
type victim struct {
	kind string
	// spoil is SQL; %s is the job.
	spoil string
	// fires: its later fires run all the same. aside: a run of it has to be set
	// aside.
	fires, aside bool
	calendar     bool // it has one

	id string
}

func victims() []*victim {
	return []*victim{
		{kind: "revision gone", spoil: "DELETE FROM job_revisions WHERE job_id = %s", aside: true},
		{kind: "revision cut", spoil: "UPDATE job_revisions SET spec = LEFT(spec, 30) WHERE job_id = %s", aside: true},
		{kind: "trigger of a revision that never was", spoil: "UPDATE triggers SET revision = 77 WHERE job_id = %s"},
		{kind: "run of a revision that never was", spoil: "UPDATE executions SET revision = 77, version = version + 1 WHERE job_id = %s AND state < 10", fires: true, aside: true},
		{kind: "run of a state that is none", spoil: "UPDATE executions SET state = 9, version = version + 1 WHERE job_id = %s AND state < 10", fires: true, aside: true},
		{kind: "run of a state past all", spoil: "UPDATE executions SET state = 99, version = version + 1 WHERE job_id = %s AND state < 10", fires: true, aside: true},
		{kind: "slot gone", spoil: "DELETE FROM job_slots WHERE job_id = %s", fires: true},
		{kind: "calendar gone", spoil: "DELETE FROM calendar_versions WHERE calendar_id IN (SELECT calendar_id FROM job_calendars WHERE job_id = %s)", calendar: true},
		{kind: "calendar cut", spoil: "UPDATE calendar_versions SET spec = '{' WHERE calendar_id IN (SELECT calendar_id FROM job_calendars WHERE job_id = %s)", calendar: true},
	}
}

// workers are the transactions in which the workers of a node are let panic.
var workers = []string{
	"claim-due-triggers", "offer-executions", "grant-offers", "finish-attempts", "sweep-executions", "record-waits",
	"give-back-offers", "record-starts", "renew-instances", "renew-partitions", "expire-instances", "expand-alert-events",
}

// f38 spoils rows of some jobs, one after the other, and restarts each node, so
// that nothing of them is in memory; then it lets each worker of a node panic
// before and after a commit. No node may end; the runs that cannot be read are
// set aside, and all other jobs go on in time.
func f38(ctx context.Context, s *stage) error {
	binary, err := lab.Build(ctx, s.dir, "carillon-failpoints", "-tags", "nomsgpack,failpoints")
	if err != nil {
		return err
	}
	points := filepath.Join(s.dir, "points")
	err = s.open(ctx, fleetPlan{admins: 2, executors: 2, binary: binary, env: func(int) []string { return []string{"CARILLON_FAILPOINTS=@" + points} }})
	if err != nil {
		return err
	}
	if err := s.begin(ctx, mixedJobs(s.rate()/2)); err != nil {
		return err
	}
	spoiled := victims()
	if err := s.makeVictims(ctx, spoiled); err != nil {
		return err
	}
	if err := wait(ctx, 4*time.Second); err != nil {
		return err
	}
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	for _, v := range spoiled {
		err := s.fault(v.kind, "a job", func() error { return v.damage(ctx, db) })
		if err != nil {
			return fmt.Errorf("%s: %w", v.kind, err)
		}
	}
	err = s.fault("labels and handlers of instances senseless", "instances", func() error {
		_, err := db.ExecContext(ctx, "UPDATE instances SET labels = '{', handlers = '['")
		return err
	})
	if err != nil {
		return err
	}
	for _, a := range s.fleet.Admins {
		err := s.fault("sigkill", a.Name, func() error {
			a.Process().Kill()
			return a.Start(ctx)
		})
		if err != nil {
			return err
		}
	}
	panicked, err := s.panics(ctx, points)
	if err != nil {
		return err
	}
	if err := wait(ctx, 5*time.Second); err != nil {
		return err
	}
	for _, a := range s.fleet.Admins {
		if a.Process().Ended() {
			return fmt.Errorf("%s has ended", a.Name)
		}
	}
	set, later, wrong := judgeVictims(ctx, db, spoiled)
	j, err := s.finish(ctx)
	if j != nil {
		s.figure("%d kinds of damage, %d panics, no node ended; %d runs set aside, %d of their jobs fired on; lateness of all others %s", len(spoiled)+1, panicked, set, later, j.inside)
		s.result.Figures["setAside"], s.result.Figures["panics"] = set, panicked
	}
	return errors.Join(wrong, err)
}

// makeVictims creates jobs that nobody judges by their fire times: serial ones
// whose handler takes longer than a second, so that there is always a run that
// works and one that waits.
func (s *stage) makeVictims(ctx context.Context, all []*victim) error {
	s.unjudged = map[string]bool{}
	api := s.fleet.Admins[0].API
	for i, v := range all {
		j := job{name: fmt.Sprintf("victim-%d", i), kind: "cron", expr: "* * * * * *", handler: handlerWork, blocking: "serial", wait: time.Minute, input: map[string]any{"ms": 1200}}
		body := j.withDefaults().body(s.tenant.executorID)
		if v.calendar {
			calendar := fmt.Sprintf("calendar-%d", i)
			if _, err := api.CreateCalendar(ctx, apiclient.CalendarWrite{Name: calendar}); err != nil {
				return err
			}
			body.Schedule.Calendars = []apiclient.CalendarChoice{{Name: calendar}}
		}
		var err error
		if v.id, err = api.MakeJob(ctx, body); err != nil {
			return fmt.Errorf("%s: %w", v.kind, err)
		}
		s.unjudged[v.id] = true
		s.firing.Store(v.id, s.tenant)
	}
	return nil
}

// damage spoils a row, when there is one to spoil.
func (v *victim) damage(ctx context.Context, db *sql.DB) error {
	return lab.Until(ctx, 10*time.Second, "a row to spoil", func(ctx context.Context) error {
		result, err := db.ExecContext(ctx, fmt.Sprintf(v.spoil, v.id))
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(errors.New("there is none"), err)
		}
		return nil
	})
}

// panics lets each worker of whichever node comes first panic; it returns how
// often one did. Some steps come only when there is something to do for them.
func (s *stage) panics(ctx context.Context, points string) (n int, err error) {
	always := workers[:5]
	for _, worker := range workers {
		for _, when := range []string{"before", "after"} {
			point := fmt.Sprintf("%s.%s-commit", worker, when)
			err := s.fault("panic", point, func() error {
				if err := os.WriteFile(points+".new", []byte(point+"=panic"), 0o600); err != nil {
					return err
				}
				if err := errors.Join(remove(points+".done"), os.Rename(points+".new", points)); err != nil {
					return err
				}
				waits := lab.Until(ctx, pick(s.set, 10*time.Second, 4*time.Second), point, func(context.Context) error {
					_, err := os.Stat(points + ".done")
					return err
				})
				switch {
				case waits == nil:
					n++
					return nil
				case slices.Contains(always, worker):
					return waits
				}
				return errors.Join(remove(points), ctx.Err())
			})
			if err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// judgeVictims looks what became of the damaged jobs: how many runs were set
// aside, and how many jobs fired on that could.
func judgeVictims(ctx context.Context, db *sql.DB, all []*victim) (set, later int, err error) {
	var p problems
	for _, v := range all {
		var aside, ended int
		err := db.QueryRowContext(ctx, "SELECT COALESCE(SUM(reason = 'set_aside'), 0), COALESCE(SUM(state = 10 AND finished_at > (UNIX_TIMESTAMP(NOW(3)) - 6) * 1000), 0) FROM executions WHERE job_id = ?",
			v.id).Scan(&aside, &ended)
		if err != nil {
			return set, later, err
		}
		set += aside
		if ended > 0 {
			later++
		}
		if v.aside && aside == 0 {
			p.add("damaged runs that nobody set aside", "%s", v.kind)
		}
		if !v.aside && aside > 0 {
			p.add("runs set aside that could run", "%s: %d", v.kind, aside)
		}
		if v.fires && ended == 0 {
			p.add("jobs that stopped for one bad run", "%s", v.kind)
		}
	}
	events, err := readEvents(ctx, db)
	if err != nil {
		return set, later, err
	}
	if !slices.ContainsFunc(events, func(e event) bool { return e.Kind == "row_set_aside" }) {
		p.add("alerts missing", "the operators heard nothing")
	}
	return set, later, p.err()
}
