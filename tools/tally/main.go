// Command tally runs test commands, shows what matters of their output and
// counts: how `make test` can close with one line for all its runners.
//
//	tally run -as go    -name root -- go test -json ./...
//	tally run -as lines -name ui   -- npm run test
//	tally run -as step  -name lint -- make lint
//	tally again
//	tally sum
//
// As go, the command speaks go test's JSON: passing tests are silent, failed
// ones are shown in full, and a skipped test counts as failed, for a test
// that silently did not run proves nothing. As lines, the last line of the
// form "N passed, N failed" counts; a command without one failed. As step,
// the command's exit status counts as one check. In all three an exit status
// other than 0 counts as a failure if nothing else did.
//
// `tally again` runs failed tests of Go once more, one after the other with nothing
// beside them, by the first words of their command, whose number -alone says. What
// passes then is named as flaky, a fault to look for, and does not count as failed. It
// does so only for a few (-most), and never for a data race, a panic, a skipped test or
// a package whose process ended early. The file that -flaky names counts them over all runs.
//
// Counts are kept in the directory that -dir names, one file per name, until
// `tally clear`. `tally sum` shows them, with the seconds and the CPU seconds
// that each run took. Its last 30 lines name the failures, with the reason and the
// command that repeats each. The last line is the plain "N passed, N failed". Its exit
// status is 1 if any failed or none ran.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		usage("which of run, again, sum, clear?")
	}
	flags := flag.NewFlagSet("tally "+os.Args[1], flag.ExitOnError)
	dir := flags.String("dir", ".cache/tally", "`directory` of the counts")
	as := flags.String("as", "step", "how the command tells its counts: go, lines or step")
	name := flags.String("name", "", "`name` of the run, shown in the sum")
	alone := flags.Int("alone", 0, "`number` of the command's words that run one test when -run and a package follow; 0: no test is run again")
	repeat := flags.String("repeat", "", "`command` that a person repeats a failure with, in which {test} and {package} are those of a test of Go; empty: the command itself, if it is no test of Go")
	flaky := flags.String("flaky", ".cache/flaky.txt", "`file` that counts flaky tests, over all runs")
	most := flags.Int("most", 3, "`number` of failed tests up to which again runs them")
	_ = flags.Parse(os.Args[2:]) // ExitOnError: it does not return one
	book := book{dir: *dir}

	var ok bool
	var err error
	switch os.Args[1] {
	case "run":
		if *name == "" || flags.NArg() == 0 {
			usage("run needs -name and a command")
		}
		ok, err = run(book, os.Stdout, command{*as, *name, *repeat, flags.Args(), *alone})
	case "again":
		ok, err = true, book.again(os.Stdout, *most, *flaky)
	case "sum":
		ok, err = book.sum(os.Stdout)
	case "clear":
		ok, err = true, book.clear()
	default:
		usage("no command " + os.Args[1])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "tally: %v\n", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func usage(problem string) {
	fmt.Fprintf(os.Stderr, "tally: %s\nusage: tally run [-as go|lines|step] -name NAME -- command ... | again | sum | clear\n", problem)
	os.Exit(2)
}

// A reader shows the output of a command as far as it matters, and counts.
type reader func(from io.Reader, to io.Writer) (count, error)

var readers = map[string]reader{"go": readGoTest, "lines": readLines, "step": readNothing}

// A command is what run runs.
type command struct {
	as, name, repeat string
	argv             []string
	alone            int // so many first words of argv run one test alone
}

// run runs the command, enters its count in the book and reports whether all
// of it passed.
func run(book book, to io.Writer, c command) (bool, error) {
	read, known := readers[c.as]
	if !known {
		return false, fmt.Errorf("no way to count as %q", c.as)
	}
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	var last tail
	// In their order with what it says otherwise, if that is no JSON.
	pipe, both, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer pipe.Close()
	cmd.Stdout, cmd.Stderr = both, both
	if c.as == "go" {
		cmd.Stderr = io.MultiWriter(os.Stderr, &last)
	}
	// Entered before and after: a run that is killed must not vanish.
	if err := book.enter(c.name, count{Failed: 1}); err != nil {
		return false, errors.Join(err, both.Close())
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return false, errors.Join(err, both.Close())
	}
	if err := both.Close(); err != nil {
		return false, err
	}
	out := io.Reader(pipe)
	if c.as != "go" {
		out = io.TeeReader(pipe, &last)
	}
	counted, readErr := read(out, to)
	if readErr != nil {
		// The command must not block on a pipe that nobody reads.
		_, _ = io.Copy(io.Discard, out)
	}
	waitErr := cmd.Wait()
	counted.Alone = c.argv[:min(c.alone, len(c.argv))]
	counted.Repeat = c.repeat
	if c.repeat == "" && c.as != "go" {
		counted.Repeat = strings.Join(c.argv, " ")
	}
	counted.Seconds = time.Since(began).Seconds()
	// Of what the command has waited for, too: not of servers in the background.
	counted.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if c.as == "step" && waitErr == nil {
		counted.Passed = 1
	}
	if err := errors.Join(readErr, waitErr); err != nil {
		fmt.Fprintf(os.Stderr, "tally: %s: %v\n", c.name, err)
		counted.Failed = max(counted.Failed, 1)
	}
	if counted.Failed > 0 && len(counted.Names) == 0 {
		counted.name(c.name)
		counted.explain(c.name, lastLines(string(last.text), maxWhy))
	}
	return counted.Failed == 0, book.enter(c.name, counted)
}
