package crashpoint

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// Options of Run.
type Options struct {
	// Dir takes binaries, data and logs; it must exist.
	Dir string
	// Product is the database server to start; empty = as tests choose it.
	Product testenv.Product
	// Databases to run on: the product's name and "sqlite"; none = both.
	Databases []string
	// Stages is how many fleets play at once on each database; 0 = 2. Most of
	// a cell is waiting.
	Stages int
	// Quick leaves out the cells that wait for a lease to run out, and takes
	// one promise of a job per point in turn.
	Quick bool
	// Only runs the cells that it accepts; nil = all. What a cell will be is
	// in Database, Arrow, Point and Mode.
	Only func(Cell) bool
	// Server is one to use; nil = a private one.
	Server lab.Server
	// Done is called after each cell, from several goroutines; may be nil.
	Done func(Cell)
}

const sqlite = "sqlite"

// Run plays all cells. A cell that fails is no error; what keeps the cells from
// being played is.
func Run(ctx context.Context, o Options) (Table, error) {
	if o.Product == "" {
		o.Product = testenv.Chosen()
	}
	if len(o.Databases) == 0 {
		o.Databases = []string{string(o.Product), sqlite}
	}
	if o.Stages == 0 {
		o.Stages = 2
	}
	if o.Done == nil {
		o.Done = func(Cell) {}
	}
	admin, worker, err := build(ctx, o.Dir)
	if err != nil {
		return Table{}, err
	}
	if o.Server == nil {
		server, err := testenv.NewServer(testenv.Options{Product: o.Product})
		if err != nil {
			return Table{}, err
		}
		defer func() { _ = server.Close() }() // private, and all that counts has been read
		o.Server = server
	}
	var (
		mu    sync.Mutex
		table Table
		errs  []error
		wg    sync.WaitGroup
	)
	for _, database := range o.Databases {
		queue := make(chan scenario)
		wg.Go(func() {
			defer close(queue)
			for _, c := range o.choose(database) {
				select {
				case queue <- c:
				case <-ctx.Done():
					return
				}
			}
		})
		for n := range o.Stages {
			wg.Go(func() {
				cells, err := playAll(ctx, o, stageSetup{
					database: database, dir: filepath.Join(o.Dir, fmt.Sprintf("%s-%d", database, n+1)),
					name: fmt.Sprintf("crash_%d", n+1), admin: admin, worker: worker, server: o.Server,
				}, queue)
				mu.Lock()
				defer mu.Unlock()
				table.Cells = append(table.Cells, cells...)
				errs = append(errs, err)
			})
		}
	}
	wg.Wait()
	return table, errors.Join(append(errs, ctx.Err())...)
}

// build makes the two programs with their failpoints.
func build(ctx context.Context, dir string) (admin, worker string, err error) {
	if admin, err = lab.Build(ctx, dir, "carillon-failpoints", "-tags", tags); err != nil {
		return "", "", err
	}
	worker = filepath.Join(dir, "worker-failpoints")
	if err := lab.GoBuild(ctx, "", "-tags", tags, "-o", worker, "github.com/carillon-sched/carillon/tools/faults/crashpoint/worker"); err != nil {
		return "", "", err
	}
	return admin, worker, nil
}

const tags = "nomsgpack,failpoints"

// choose returns the cells to play on a database.
func (o Options) choose(database string) []scenario {
	var out []scenario
	turn := map[string]int{}
	for _, c := range scenarios(database) {
		cell := Cell{Database: database, Arrow: c.arrow, Point: c.point, Mode: c.mode.name}
		if o.Quick {
			at := turn[c.point]
			turn[c.point]++
			if c.slow || at > 0 {
				continue
			}
		}
		if o.Only == nil || o.Only(cell) {
			out = append(out, c)
		}
	}
	return out
}

// playAll opens a stage and plays what comes until the queue ends.
func playAll(ctx context.Context, o Options, setup stageSetup, queue <-chan scenario) (cells []Cell, err error) {
	var s *stage
	defer func() {
		if s != nil {
			s.close()
		}
		for range queue { // nobody plays the rest when the stage cannot
		}
	}()
	for c := range queue {
		if s == nil {
			if s, err = openStage(ctx, setup); err != nil {
				return cells, fmt.Errorf("%s: %w", setup.database, err)
			}
		}
		cell := inTime(func() Cell { return s.play(ctx, c) })
		if ctx.Err() != nil {
			return cells, nil
		}
		cells = append(cells, cell)
		o.Done(cell)
		if !cell.Passed { // what a failed cell left behind must not spoil the next
			s.close()
			s = nil
			setup.name += "x"
			setup.dir += "x"
		}
	}
	return cells, nil
}

// maxPlays is how often a cell may be late and all else be right before it fails:
// a machine that stands still makes it late once, a mechanism that does not act
// each time.
const maxPlays = 3

// inTime plays a cell until it is in time, or wrong, or has been played so often.
func inTime(play func() Cell) Cell {
	var sum Cell // what was due counts in each play
	for n := 1; ; n++ {
		cell := play()
		sum.Targets, sum.Missed, sum.Double = sum.Targets+cell.Targets, sum.Missed+cell.Missed, sum.Double+cell.Double
		if !cell.Late || n == maxPlays {
			cell.Plays, cell.Targets, cell.Missed, cell.Double = n, sum.Targets, sum.Missed, sum.Double
			return cell
		}
	}
}

// tolerance is added to every goal: the machine is shared, and its processes
// take a moment to start.
const tolerance = 1500 * time.Millisecond
