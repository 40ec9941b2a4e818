package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// Each command whose usage line names an argument says which one is missing, and how to give it.
func TestMissingArgumentsAreNamed(t *testing.T) {
	term := newTerminal(t)
	tried := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			walk(below)
		}
		words := strings.Fields(c.Use)
		if c.HasSubCommands() || len(words) < 2 || words[1][0] == '-' || words[1][0] == '[' || c.Args == nil {
			return
		}
		tried++
		r := term.run(strings.Fields(c.CommandPath())[1:]...)
		require.Equal(t, 2, r.code, "%s: %s", c.CommandPath(), r.stderr)
		require.NotContains(t, r.stderr, "arg(s)", c.CommandPath())
		require.Contains(t, r.stderr, "See: "+c.CommandPath()+" --help", c.CommandPath())
	}
	walk(newRoot())
	require.Greater(t, tried, 50)
	r := term.run("provision", "check")
	require.Contains(t, r.stderr, "name one provision file, or one folder of such files")
	r = term.run("job", "list", "x")
	require.Contains(t, r.stderr, `carillon job list takes no argument: leave out "x"`)
	r = term.run("job", "get", "a", "b")
	require.Contains(t, r.stderr, `"b" is one argument too many: write carillon job get JOB`)
}

// A wrong value, flag or combination is a mistake of usage in all commands, also in those that run a
// server or stand beside its database.
func TestMistakesOfUsage(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	dir := t.TempDir()
	file := filepath.Join(dir, "wrong.yaml")
	require.NoError(t, os.WriteFile(file, []byte("log-level: loud\n"), 0o600))
	for line, says := range map[string]string{
		"job list --sate paused":                                 `unknown flag: --sate; did you mean "--state"?`,
		"job list --state":                                       "--state needs a value: enabled, paused, failing, late or never_fires",
		"audit list --limit -5":                                  "--limit: -5 is too small: use 0 or more",
		"alert incident list --limit -5":                         "--limit: -5 is too small: use 0 or more",
		"bulk list -n -1":                                        "--limit: -1 is too small: use 0 or more",
		"timer list -n -1":                                       "--limit: -1 is too small: use 0 or more",
		"job fires --limit 201":                                  "--limit: 201 is out of range: use a number from 0 to 200",
		"run logs 1 --last -1":                                   "--last: -1 is out of range: use a number from 0 to 5000",
		"alert incident list --state opn":                        `did you mean "open"?`,
		"alert silence create --for 1w --reason x":               `--for: "1w" is no span of time: write a number with its unit; units are ms, s, m, h and d`,
		"maintenance on --for 2":                                 "units are ms, s, m, h and d",
		"job overdue --by soon":                                  "units are ms, s, m, h and d",
		"timer set shop/h --after 2x":                            "units are ms, s, m, h and d",
		"server --run-retention 3w":                              "units are ms, s, m, h and d",
		"server --log-level loud":                                "log-level: \"loud\" is none of debug, info, warn, error",
		"server --config " + file:                                "log-level: \"loud\" is none of debug, info, warn, error",
		"server --data " + dir + "/d --run-retention 1h":         "run retention: 1h0m0s is less than a day",
		"server --data " + dir + "/d --node-numbers x":           "x",
		"server --data " + dir + "/d --tls-cert a":               "certificate and key have to be given together",
		"migrate --data " + dir + "/d --log-format xml":          `log-format: "xml" is neither text nor json`,
		"backup x.db --output xml":                               `--output: "xml" is none of text, json`,
		"restore x.db --loaded":                                  "give a FILE, or --loaded for a database on a server",
		"verify -o xml":                                          `--output: "xml" is none of text, json`,
		"doctor -o xml":                                          `--output: "xml" is none of text, json`,
		"config explain -o xml":                                  `--output: "xml" is none of text, json`,
		"tenant move acme --to eu --to-config a --to-database b": "name the cell with --to",
		"ready --http nowhere":                                   "http: ",
		"agent --limit-memory lots":                              "limit-memory: ",
	} {
		r := term.run(strings.Fields(line)...)
		require.Equal(t, 2, r.code, "%s: %s", line, r.stderr)
		require.Contains(t, r.stderr, says, line)
		require.NotContains(t, r.stderr, "strconv", line)
		require.NotContains(t, r.stderr, "invalid argument", line)
	}
}

// A day is a unit wherever a span is given.
func TestDaysAreSpans(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("timer", "set", "shop/h", "--key", "k", "--after", "1d")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "24h0m0s", server.lastBody("POST /timers")["after"])
	r = term.run("run", "list", "--since", "1d12h", "--until", "2h")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, server.lastQuery("GET /runs"), "to=")
	r = term.run("config", "explain", "run-retention", "--run-retention", "100d")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "2400h0m0s")
}
