package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func (c Config) storeOptions() (gormstore.Options, error) {
	c, err := c.withDefaults()
	if err != nil {
		return gormstore.Options{}, err
	}
	driver, dsn, err := c.database()
	if err != nil {
		return gormstore.Options{}, err
	}
	o := gormstore.Options{
		Driver: driver, DSN: dsn, Logger: c.Logger, AllowMultiWriter: c.AllowMultiWriter, NextFire: timing.Next, FiresPerMinute: timing.FiresPerMinute,
		Tables:    addOnTables(),
		LogLimits: store.LogLimits{RunLines: max(c.Logs.RunLines, 0), RunBytes: max(c.Logs.RunBytes, 0), TenantDayBytes: max(c.Logs.TenantDayBytes, 0)},
	}
	if c.Statistics.Off {
		o.Unread |= domain.TopicEnds
	}
	subscribe(&o)
	return o, nil
}

// database splits Database into driver and data source.
func (c Config) database() (driver, dsn string, err error) {
	if c.DatabasePassword != "" && !strings.HasPrefix(c.Database, "mysql://") {
		return "", "", errors.New("database password: it is for a database of the form mysql://user@host:port/name; leave it out")
	}
	switch {
	case strings.HasPrefix(c.Database, "sqlite:"):
		return "sqlite", strings.TrimPrefix(c.Database, "sqlite:"), nil
	case strings.HasPrefix(c.Database, "mysql://"):
		// mysql://user:password@host:port/name?options → user:password@tcp(host:port)/name?options
		rest := strings.TrimPrefix(c.Database, "mysql://")
		at := strings.LastIndex(rest, "@")
		slash := strings.Index(rest[at+1:], "/")
		if slash < 0 {
			return "", "", errors.New("database: expected mysql://user:password@host:port/name")
		}
		user, host, name := rest[:at+1], rest[at+1:at+1+slash], rest[at+1+slash:]
		if c.DatabasePassword != "" {
			if at < 1 || strings.Contains(user, ":") {
				return "", "", errors.New("database password: the database has to name a user and no password, as in mysql://user@host:port/name")
			}
			user = user[:at] + ":" + c.DatabasePassword + "@"
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(host, "3306")
		}
		return "mysql", user + "tcp(" + host + ")" + name, nil
	case strings.HasPrefix(c.Database, "mysql:"):
		return "mysql", strings.TrimPrefix(c.Database, "mysql:"), nil
	default:
		return "", "", errors.New("database: must begin with sqlite: or mysql:// (see carillon server --help)")
	}
}

// scheduleCache is how many compiled schedules a node keeps: some kilobytes each.
const scheduleCache = 32_768

func (a *Admin) openStore(ctx context.Context) error {
	options, err := a.config.storeOptions()
	if err != nil {
		return err
	}
	if err := gormstore.Probe(ctx, options); err != nil {
		return err
	}
	if err := gormstore.Admit(ctx, options); err != nil {
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
	return a.store.AdmitTables(ctx, options, a.log.With("component", "database"))
}
