package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A word that a flag does not know is a mistake of usage: exit code 2, the words
// that there are, and the one that was meant. The server is not asked.
func TestChoices(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	for _, tt := range []struct {
		args []string
		says []string
	}{
		{[]string{"run", "list", "--state", "failed,runing"}, []string{`did you mean "running"?`, "due, offered, running, cancelling, retry_wait"}},
		{[]string{"run", "list", "--cause", "shedule"}, []string{`did you mean "schedule"?`, "backfill"}},
		{[]string{"run", "logs", "1", "--level", "WARNING"}, []string{`did you mean "WARN"?`, "DEBUG, INFO, WARN, ERROR"}},
		{[]string{"run", "explain", "1", "--lang", "de"}, []string{"en, zh"}},
		{[]string{"job", "list", "--state", "pausd"}, []string{`did you mean "paused"?`, "enabled, paused"}},
		{[]string{"job", "list", "--sort", "nextfire"}, []string{`did you mean "nextFireAt"?`, "updatedAt"}},
		{[]string{"job", "backfill", "close-day", "--scope", "mising"}, []string{`did you mean "missing"?`, "unsuccessful"}},
		{[]string{"calendar", "import", "c", "--as", "holiday"}, []string{`did you mean "holidays"?`, "make_up_days"}},
		{[]string{"script", "push", "s", "--language", "pyton"}, []string{`did you mean "python"?`, "powershell"}},
		{[]string{"script", "policy", "--languages", "shell,pyhton"}, []string{`did you mean "python"?`, "none, shell"}},
		{[]string{"api-key", "create", "k", "--role", "edtor"}, []string{`did you mean "editor"?`, "caller, timer, viewer"}},
		{[]string{"user", "create", "u", "--role", "timer"}, []string{`"timer" is none of viewer, operator`}}, // of API keys only
		{[]string{"cron", "next", "* * * * *", "--dialect", "quarz"}, []string{`did you mean "quartz"?`, "standard"}},
		{[]string{"cron", "explain", "* * * * *", "--lang", "de"}, []string{"en, zh"}},
		{[]string{"job", "list", "-o", "jsn"}, []string{"table, wide, json"}},
	} {
		r := term.run(tt.args...)
		require.Equal(t, 2, r.code, "%v: %s", tt.args, r.stderr)
		for _, words := range tt.says {
			require.Contains(t, r.stderr, words, "%v", tt.args)
		}
	}
	require.Equal(t, 0, term.run("run", "list", "--state", "FAILED, lost", "--cause", "").code)
	require.Equal(t, "limit=50&state=failed%2Clost", server.lastQuery("GET /runs"))
}

func TestRunGetShowsProgressAndSteps(t *testing.T) {
	server := newFakeServer(t)
	server.locked(func() { server.runs["7301"] = "succeeded" })
	term := keyed(t, server)
	r := term.run("run", "get", "7301")
	require.Equal(t, 0, r.code, r.stderr)
	require.Regexp(t, `Progress +42.5 % page 17 \(2026-11-21T04:00:02`, r.stdout)
	require.Regexp(t, `STEP +STORED +OUTPUT`, r.stdout)
	require.Regexp(t, `charge +2026-11-21T04:00:01\S* +\{"receipt":"r1"\}`, r.stdout)

	r = term.run("run", "get", "7301", "-o", "json")
	require.Equal(t, 0, r.code, r.stderr)
	var doc struct {
		Progress struct{ Percent float64 }
		Steps    []struct{ Name string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &doc))
	require.Equal(t, 42.5, doc.Progress.Percent)
	require.Equal(t, "charge", doc.Steps[0].Name)
}
