package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// f11 starts a second process under the name of the first, and lets a crowd of
// executors come and go five times a second.
func f11(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2}); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	quiet, err := s.writesPerSecond(ctx, 10*time.Second)
	if err != nil {
		return err
	}
	err = s.fault("the same name twice", "executor-1", func() error {
		twin := s.executors[0].command
		twin.Name += "-twin"
		p, err := s.fleet.StartExecutor(twin)
		if err != nil {
			return err
		}
		err = wait(ctx, 10*time.Second)
		p.Stop()
		return err
	})
	if err != nil {
		return err
	}
	crowd, measured := pick(s.set, 200, 40), pick(s.set, 60*time.Second, 15*time.Second)
	var busy float64
	err = s.fault(fmt.Sprintf("%d executors flapping at 5 Hz", crowd), "executors", func() error {
		p, err := s.fleet.StartExecutor(lab.Command{
			Name: "crowd", Env: []string{"CARILLON_EXECUTOR_TOKEN=" + s.tenant.token}, Program: s.set.self,
			Args: []string{"crowd", "-addr", s.fleet.Admins[0].Wire, "-journal", filepath.Join(s.dir, "crowd"), "-n", fmt.Sprint(crowd)},
		})
		if err != nil {
			return err
		}
		if err = wait(ctx, 3*time.Second); err == nil {
			busy, err = s.writesPerSecond(ctx, measured)
		}
		if p.Ended() {
			err = errors.Join(err, errors.New("the crowd ended by itself"))
		}
		p.Kill()
		return err
	})
	if err != nil {
		return err
	}
	// Killed instances are gone when their leases have run out.
	if err := wait(ctx, 20*time.Second); err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	told, alertErr := s.alerts(ctx, "executor_flapping")
	err = errors.Join(err, alertErr)
	alerts := told["0"] // it is about no run
	if alerts != 1 {
		err = errors.Join(err, fmt.Errorf("%d alerts executor_flapping, want one", alerts))
	}
	s.result.Figures["alerts"] = alerts
	s.result.Figures["writesPerSecondQuiet"], s.result.Figures["writesPerSecondFlapping"], s.result.Figures["crowd"] = quiet, busy, crowd
	s.figure("database writes/s %.0f, with %d executors flapping %.0f; %d alert; lateness %s", quiet, crowd, busy, alerts, j.inside)
	// Of each name 20 may come at once, and 20 in each minute; each is a token's
	// use, a row of an instance and its end.
	if limit := quiet*1.5 + float64(crowd)*(20/measured.Seconds()+20/time.Minute.Seconds())*15; busy > limit {
		err = errors.Join(err, fmt.Errorf("%.0f writes/s, more than %.0f", busy, limit))
	}
	return err
}

// writesPerSecond measures the database's row changes.
func (s *stage) writesPerSecond(ctx context.Context, d time.Duration) (float64, error) {
	db, err := s.db.Open()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	count := func() (n float64, err error) {
		err = db.QueryRowContext(ctx, `SELECT SUM(CAST(variable_value AS UNSIGNED)) FROM information_schema.global_status
			WHERE variable_name IN ('HANDLER_WRITE', 'HANDLER_UPDATE', 'HANDLER_DELETE')`).Scan(&n)
		return n, err
	}
	before, err := count()
	if err != nil {
		return 0, err
	}
	if err := wait(ctx, d); err != nil {
		return 0, err
	}
	after, err := count()
	return (after - before) / d.Seconds(), err
}
