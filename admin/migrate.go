package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// scheduleCache is how many compiled schedules a node keeps: some kilobytes each.
const scheduleCache = 32_768

func (c Config) storeOptions() (gormstore.Options, error) {
	c, err := c.withDefaults()
	if err != nil {
		return gormstore.Options{}, err
	}
	driver, dsn, err := c.database()
	if err != nil {
		return gormstore.Options{}, err
	}
	return gormstore.Options{
		Driver: driver, DSN: dsn, Logger: c.Logger, AllowMultiWriter: c.AllowMultiWriter, NextFire: timing.Next, FiresPerMinute: timing.FiresPerMinute,
		NoStatistics: c.Statistics.Off,
		LogLimits:    store.LogLimits{RunLines: max(c.Logs.RunLines, 0), RunBytes: max(c.Logs.RunBytes, 0), TenantDayBytes: max(c.Logs.TenantDayBytes, 0)},
	}, nil
}

func (a *Admin) openStore(ctx context.Context) error {
	options, err := a.config.storeOptions()
	if err != nil {
		return err
	}
	if err := gormstore.Probe(ctx, options); err != nil {
		return err
	}
	if err := a.config.refuseServer(ctx, options); err != nil {
		return err
	}
	if err := gormstore.Migrate(ctx, options); err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	if a.schedules, err = timing.NewCache(scheduleCache); err != nil {
		return err
	}
	options.Misfire = scheduler.Misfire(a.schedules.Plan)
	options.Observe = a.metrics.ObserveTransaction
	options.Rearmed = func() {
		if a.planner != nil { // runs end only after the engine was built
			a.planner.Nudge()
		}
	}
	if a.store, err = gormstore.Open(ctx, options); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	return a.checkDatabase(ctx)
}

// refuseServer looks at the database server before a table is made in it: a
// server that does not do would fail there with less to say.
func (c Config) refuseServer(ctx context.Context, options gormstore.Options) (err error) {
	s, err := gormstore.OpenReader(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d, err := s.DescribeServer(ctx)
	if err != nil || d.ReadOnly { // then it is waited for
		return err
	}
	return c.refusal(d.Findings)
}

// refusal is of those findings with which promises cannot be kept.
func (c Config) refusal(findings []domain.Finding) error {
	var fatal []error
	for _, f := range findings {
		if c.refuses(f) {
			fatal = append(fatal, errors.New(f.Message))
		}
	}
	if len(fatal) > 0 {
		return fmt.Errorf("refuse the database: %w", errors.Join(fatal...))
	}
	return nil
}

func (c Config) refuses(f domain.Finding) bool {
	return f.Fatal && !(f.Code == "multi_writer" && c.AllowMultiWriter)
}

// checkDatabase refuses a database with which promises cannot be kept, and
// names what weakens them.
func (a *Admin) checkDatabase(ctx context.Context) error {
	d, err := a.store.DescribeDatabase(ctx)
	if err != nil {
		return err
	}
	log := a.log.With("component", "database")
	log.Info("database", "kind", d.Kind, "version", d.Version, "role", d.Role)
	for _, f := range d.Findings {
		if !a.config.refuses(f) {
			log.Warn("the database endangers a promise", "finding", f.Code, "what", f.Message)
		}
	}
	return a.config.refusal(d.Findings)
}
