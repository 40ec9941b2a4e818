// Command carillon-generate writes registration code from marker comments, for
// builds that do not have the carillon binary:
//
//	go get -tool github.com/carillon-sched/carillon/executor-sdk/generate/cmd/carillon-generate
//	//go:generate go tool carillon-generate
//
// See package generate for the markers. It differs from `carillon generate`
// only in judging cron expressions by their number of fields.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	_ "time/tzdata" // zone= is checked on machines without zone files too

	"github.com/carillon-sched/carillon/executor-sdk/generate"
)

func main() {
	check := flag.Bool("check", false, "write nothing; exit 1 when generated files differ")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: carillon-generate [-check] [folder | folder/...]...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := generate.Run(flag.Args(), *check, generate.Options{}, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		var problems generate.Problems
		if errors.As(err, &problems) {
			fmt.Fprintf(os.Stderr, "%d problems; nothing was written\n", len(problems))
		}
		os.Exit(1)
	}
}
