package tenantmove

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// Order says which tenant goes where.
type Order struct {
	// Tenant is its name, and Cell the name of the target in the source's registry.
	Tenant, Cell string
	// Wait is how long its runs may take to end once it starts nothing.
	Wait time.Duration
	// DryRun only says whether it can move; Abort ends a move that was not finished.
	DryRun, Abort bool
	Logger        *slog.Logger
	// Step is called before each step, and may refuse it; nil: it goes on.
	Step func(name string) error
}

// Between moves a tenant from the database of one cell to that of another one, while
// both serve (docs/adr/0088). The same call goes on with a move that has ended anywhere.
func Between(ctx context.Context, from, to gormstore.Options, o Order) (report Report, err error) {
	source, err := openCell(ctx, from)
	if err != nil {
		return report, fmt.Errorf("the source: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := openCell(ctx, to)
	if err != nil {
		return report, fmt.Errorf("the target: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	m, err := New(ctx, Options{Order: o, From: source.DB, To: target.DB, CountEnds: source.CountEnds})
	if err != nil {
		return report, err
	}
	if o.Abort {
		return report, m.Abort(ctx, target.PurgeMoved)
	}
	nothing := Report{Tenant: o.Tenant, Cell: o.Cell, Rows: map[string]int64{}}
	if o.DryRun {
		return nothing, m.CanMove(ctx)
	}
	if err := m.Check(ctx); err != nil {
		return nothing, err
	}
	return m.Run(ctx)
}

// openCell opens the database of a cell, which has to be of this version.
func openCell(ctx context.Context, o gormstore.Options) (*gormstore.Store, error) {
	s, err := gormstore.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	schema, err := s.Schema(ctx)
	if err == nil && (schema.Pending > 0 || schema.Applied != schema.Known) {
		err = fmt.Errorf("its schema is at version %d, and this program's is %d: use the program of its nodes", schema.Applied, schema.Known)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
