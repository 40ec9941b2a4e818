package script

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func scriptDiff(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "diff SCRIPT [FROM [TO]]", Short: "Show what changed between two versions (default: the newest two)", Args: cobra.RangeArgs(1, 3),
		Example: "  carillon script diff report\n  carillon script diff report 1 4",
		RunE: cli.About(a, kind.Find, func(cmd *cobra.Command, s *cli.Session, script document.Document, args []string) (err error) {
			from, to := max(1, script.Value.Version-1), script.Value.Version
			for i, at := range []*int64{&from, &to}[:len(args)-1] {
				if *at, err = document.ReadVersion(args[i+1]); err != nil {
					return err
				}
			}
			d, err := s.DiffScript(cmd.Context(), script.Value.ID, apiclient.DiffScriptParams{From: from, To: to})
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.Out, unified(fmt.Sprintf("version %d", from), fmt.Sprintf("version %d", to), d.Value))
			return err
		}),
	}
}

// around is how many lines stand around a change.
const around = 3

// unified writes a difference as diff -u does.
func unified(from, to string, d apiclient.ScriptDiff) string {
	if d.Added+d.Removed == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	oldLine, newLine := 1, 1 // of lines[at]
	for at := 0; at < len(d.Lines); {
		begin, end := hunk(d, at)
		for ; at < begin; at++ { // lines that are the same
			oldLine, newLine = oldLine+1, newLine+1
		}
		if begin == end {
			break
		}
		var body strings.Builder
		oldBegin, newBegin := oldLine, newLine
		for ; at < end; at++ {
			l := d.Lines[at]
			sign := " "
			switch l.Op {
			case "added":
				sign, newLine = "+", newLine+1
			case "removed":
				sign, oldLine = "-", oldLine+1
			default:
				oldLine, newLine = oldLine+1, newLine+1
			}
			body.WriteString(sign + output.Clean(l.Text) + "\n")
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n%s", oldBegin, oldLine-oldBegin, newBegin, newLine-newBegin, body.String())
	}
	return out.String()
}

// hunk finds the next changes from at on, with the lines around them; empty at
// the end when there are none.
func hunk(d apiclient.ScriptDiff, at int) (begin, end int) {
	first := at
	for first < len(d.Lines) && d.Lines[first].Op == "same" {
		first++
	}
	if first == len(d.Lines) {
		return first, first
	}
	last := first
	for i := first; i < len(d.Lines) && i <= last+2*around; i++ {
		if d.Lines[i].Op != "same" {
			last = i
		}
	}
	return max(at, first-around), min(len(d.Lines), last+around+1)
}
