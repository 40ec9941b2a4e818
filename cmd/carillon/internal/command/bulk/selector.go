package bulk

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// selector chooses jobs or runs by conditions.
type selector struct {
	filter                      apiclient.BulkFilter
	executor, job, since, until string
	yes                         bool
	flags                       []string // names of the conditions
}

// add adds the flags of the conditions to a command.
func (c *selector) add(a *cli.App, cmd *cobra.Command, runs bool) {
	flags := cmd.Flags()
	text := func(to *string, name, short, usage string) {
		flags.StringVarP(to, name, short, "", usage)
		c.flags = append(c.flags, name)
	}
	cli.LabelFlag(cmd, &c.filter.Label, "all with these labels of their job")
	c.flags = append(c.flags, "label")
	cli.NameField(cmd, "body.filter.label", "--label")
	text(&c.executor, "executor", "", "all of this executor, by name or id")
	text(&c.filter.Owner, "owner", "", "all with this part of the name or address of their job's owner")
	text(&c.filter.Name, "name", "", "all whose job's name is like this; * stands for any text")
	if runs {
		text(&c.filter.State, "state", "", "all in these states, separated by commas")
		text(&c.since, "since", "", "all planned in this span before now (24h), or from this RFC 3339 instant")
		text(&c.until, "until", "", "all planned before this span before now (1h), or before this RFC 3339 instant")
		cli.ChoiceFlag(cmd, &c.filter.Cause, "cause", "", []string{"schedule", "misfire", "manual", "api", "retry", "parent", "backfill", "timer", "import"},
			"all that exist for this reason (default of a retry: all but retries)")
		c.flags = append(c.flags, "cause")
		text(&c.filter.Error, "error", "", "all with this part of the handler's error")
		text(&c.filter.Fingerprint, "fingerprint", "", "all that ended with this error (carillon stats --by error)")
		text(&c.job, "job", "", "all of this job, by name or id")
		a.CompleteFlag(cmd, "job", a.CompleteJobs)
	} else {
		cli.ChoiceFlag(cmd, &c.filter.State, "state", "", []string{"enabled", "paused"}, "all that are enabled or paused")
		c.flags = append(c.flags, "state")
	}
	a.CompleteFlag(cmd, "executor", a.CompleteExecutors)
	if flags.Lookup("yes") == nil {
		flags.BoolVarP(&c.yes, "yes", "y", false, "do not ask, for a selection")
	}
}

// used reports whether the command line has a condition.
func (c *selector) used(cmd *cobra.Command) bool {
	for _, name := range c.flags {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// args takes words, or conditions instead of them.
func (c *selector) args(cmd *cobra.Command, args []string) error {
	switch selects := c.used(cmd); {
	case selects && len(args) > 0:
		return cli.Usagef("names and conditions exclude each other: leave out %q, or the conditions", args[0])
	case !selects && len(args) == 0:
		return cli.Usagef("say which: by name or id, or by conditions such as --label and --executor")
	}
	return nil
}

// resolve is the filter with ids.
func (c *selector) resolve(a *cli.App, cmd *cobra.Command, s *cli.Session) (apiclient.BulkFilter, error) {
	f := c.filter
	if c.executor != "" {
		e, err := cli.FindExecutor(cmd.Context(), s, c.executor)
		if err != nil {
			return f, err
		}
		f.ExecutorID = e.ID
	}
	if c.job != "" {
		j, err := cli.FindJob(cmd.Context(), s, c.job)
		if err != nil {
			return f, err
		}
		f.JobID = j.Value.ID
	}
	var err error
	if f.From, err = instant(a, "--since", c.since); err != nil {
		return f, err
	}
	f.To, err = instant(a, "--until", c.until)
	return f, err
}

// instant is the time that a flag says; nil: the flag is not given.
func instant(a *cli.App, flag, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	stamp, err := a.InstantBefore(flag, text)
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339, stamp)
	return &at, err
}
