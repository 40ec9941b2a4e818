// Command faults breaks a real fleet in the ways of the fault matrix, and says
// for each what was missed and what was doubled.
//
//	go run ./tools/faults run                      # every row, as docs/dev/reliability.md has them
//	go run ./tools/faults run --ci                 # some minutes: fewer injections, shorter pauses, rows side by side
//	go run ./tools/faults run --only F01,F19 --rate 400 --rounds 100
//	go run ./tools/faults run --ci --product mysql # another database server: fewer rows, the short ones
//	go run ./tools/faults list
//
// Each row starts admin nodes and executors as processes on a private MariaDB
// (or MySQL), gives them a steady load, injects its fault so and so often, heals, waits
// until all that was due has ended, and hands the history (calls made to the
// API, what the handlers themselves wrote down, our rows) to package
// admin/verify, which expands the schedules a second time and judges. A row
// that this machine cannot run says why. Everything listens on loopback or in
// network namespaces of its own, and ends with this process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("what? run, list, or executor (used by itself)")
	}
	switch args[0] {
	case "run":
		return runRows(ctx, args[1:])
	case "list":
		for _, r := range matrix() {
			fmt.Fprintf(os.Stdout, "%-4s %s\n", r.id, r.title)
		}
		return nil
	case "executor":
		return witness(ctx, args[1:])
	case "crowd":
		return crowd(ctx, args[1:])
	case "swept":
		return swept(ctx, args[1:])
	case "hostile":
		return attacker(ctx, args[1:])
	default:
		return fmt.Errorf("there is no command %q: run, list, executor", args[0])
	}
}

// settings are the same for all rows of a run.
type settings struct {
	ci     bool
	rate   int           // fires per second of the steady load; 0 = the row's own
	rounds int           // injections; 0 = the row's own
	lasts  time.Duration // the load, the flood or the faults of F36, F37, F39 and F46; 0 = the row's own
	lanes  int           // rows at once
	only   []string
	json   string
	md     string
	dir    string
	keep   bool
	// product of the database server that rows start.
	product testenv.Product

	binary string // carillon
	self   string // this program, as executor
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("faults run", flag.ContinueOnError)
	flags.BoolVar(&s.ci, "ci", false, "the selection for CI: fewer injections, shorter pauses")
	flags.IntVar(&s.rate, "rate", 0, "fires per second of the steady load (default 200, with --ci 100)")
	flags.IntVar(&s.rounds, "rounds", 0, "injections per row (default: as the matrix says; with --ci fewer)")
	flags.DurationVar(&s.lasts, "for", 0, "how long the overload of F36, the floods of F37 and F46 and the faults of F39 last (default 7m, 1m, 1m and 30m, with --ci 40s, 10s, 10s and 2m)")
	flags.IntVar(&s.lanes, "lanes", 0, "rows at once (default 1, with --ci on MariaDB 2: most of a row is waiting)")
	only := flags.String("only", "", "rows to run, for example F01,F03 (default: all)")
	flags.StringVar(&s.json, "json", "", "write the results as JSON to this file; - for standard output instead of the table")
	flags.StringVar(&s.md, "markdown", "", "write the table of docs/dev/reliability.md to this file")
	flags.StringVar(&s.dir, "dir", "", "folder for data, logs and histories (default: a temporary one)")
	flags.BoolVar(&s.keep, "keep", false, "keep the folders of rows that passed, too")
	product := flags.String("product", string(testenv.Chosen()), "database server that rows start: mariadb, or mysql (with --ci fewer rows and injections: the engine is the same)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	s.product = testenv.Product(*product)
	if s.lanes <= 0 {
		s.lanes = 1
		if s.ci && !s.onMySQL() {
			s.lanes = 2
		}
	}
	for id := range strings.SplitSeq(*only, ",") {
		if id = strings.ToUpper(strings.TrimSpace(id)); id != "" {
			s.only = append(s.only, id)
		}
	}
	return s, nil
}

// onMySQL: CI's selection on MySQL was asked for.
func (s *settings) onMySQL() bool { return s.ci && s.product == testenv.MySQL }

// pick chooses a size: long as the matrix says, or short for CI.
func pick[T any](s *settings, long, short T) T {
	if s.ci {
		return short
	}
	return long
}
