package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/admin/verify/ledger"
)

// Account judges what the database says of the fire times since then
// (docs/guide/verify.md). It only reads, and needs no running node; the tables have
// to be those of this version.
func Account(ctx context.Context, config Config, since time.Duration) (report *verify.Report, err error) {
	options, err := config.storeOptions()
	if err != nil {
		return nil, err
	}
	if options.Driver == "sqlite" {
		if _, err := os.Stat(options.DSN); err != nil {
			return nil, fmt.Errorf("no database: %w", err)
		}
	}
	if config, err = config.withDefaults(); err != nil {
		return nil, err
	}
	if since > config.RunRetention {
		return nil, fmt.Errorf("since: rows are kept for %s only", config.RunRetention)
	}
	options.Logger, options.ReadOnly = slog.New(slog.DiscardHandler), true // nothing is repeated
	pending, err := gormstore.PendingSQL(ctx, options)
	if err != nil {
		return nil, err
	}
	if pending != "" {
		return nil, errors.New("the tables are not those of this version: start a node of it, or run carillon migrate")
	}
	s, err := gormstore.OpenReader(options)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return ledger.Check(ctx, s, ledger.Options{Since: since})
}
