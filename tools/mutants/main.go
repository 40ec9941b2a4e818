// Mutants answers one question: would a test notice if this line were wrong?
//
// list.txt holds faults, each a change of a few lines and the tests that have to
// fail with it. Every one is put into the product in turn, by an overlay of the go
// command: no file is touched, and only what depends on it is compiled again. A
// mutant that its tests do not notice has survived, and that is a failure, unless
// the list says why it changes nothing.
//
//	make mutants
//	make mutants ARGS="-only 'journal|lease'"
//
// That the list still fits the code is checked by this package's tests.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"
)

//go:embed list.txt
var list string

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("only", "", "names of mutants, a regular expression; empty = all")
	jobs := flag.Int("j", 2, "mutants at once")
	limit := flag.Duration("timeout", 3*time.Minute, "how long the tests of one may take; one that hangs is noticed")
	flag.Parse()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	all, err := parse(list)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	h := harness{root: ".", jobs: max(1, *jobs), limit: *limit, out: os.Stdout}
	var chosen []mutant
	for _, m := range all {
		if wanted.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	return h.all(ctx, chosen)
}
