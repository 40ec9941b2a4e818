package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/tools/faults/crashpoint"
)

// f02 ends processes at every step of a run: see package crashpoint. It has
// fleets and databases of its own.
func f02(ctx context.Context, s *stage) error {
	o := crashpoint.Options{Dir: s.dir, Quick: s.set.ci, Product: s.set.product}
	if s.set.onMySQL() {
		// SQLite has been played; its fleets play here.
		o.Databases, o.Stages = []string{string(testenv.MySQL)}, 4
	}
	table, err := crashpoint.Run(ctx, o)
	if err != nil {
		return err
	}
	table.Print(os.Stderr)
	s.result.Injected = len(table.Cells)
	s.result.Targets, s.result.Missed, s.result.Double = table.Sum()
	delay, over := table.MaxDelay(), table.MaxExcess()
	s.result.Figures = map[string]any{
		"cells": len(table.Cells), "passed": table.Passed(), "maxDelayMs": delay.Milliseconds(), "maxOverGoalMs": over.Milliseconds(), "playedAgain": table.Again(),
	}
	s.figure("%d of %d cells, %d played again for being late; added delay at most %s, and %s over the goal of its cell",
		table.Passed(), len(table.Cells), table.Again(), delay.Round(time.Millisecond), over.Round(time.Millisecond))
	if bad := len(table.Cells) - table.Passed(); bad > 0 {
		return fmt.Errorf("%d cells failed", bad)
	}
	return nil
}
