package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// keyed is a terminal with an API key for the server.
func keyed(t *testing.T, server *fakeServer) *terminal {
	return newTerminal(t, "CARILLON_URL="+server.url, "CARILLON_API_KEY=ck_good")
}

func TestJobList(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("job", "list")
	require.Equal(t, 0, r.code)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, "NAME STATE PAUSED BY SCHEDULE ZONE NEXT LAST WAITING EXECUTOR ONLINE", strings.Join(strings.Fields(lines[0]), " "))
	require.Contains(t, lines[1], "0 0 2 * * *")
	require.NotContains(t, r.stdout, "\x1b", "no colours in a pipe")

	r = term.run("job", "list", "--executor", "shop", "--state", "paused", "-l", "team=pay", "-q", "x", "-n", "7")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "executorId=5&label=team%3Dpay&limit=7&q=x&state=paused", server.lastQuery("GET /jobs"))
	require.Equal(t, 0, term.run("job", "list", "--never-fires", "-n", "1").code)
	require.Equal(t, "limit=1&neverFires=true", server.lastQuery("GET /jobs"))
}

// A job can be got, edited and put back; a newer revision is not overwritten.
func TestJobRoundTrip(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	file := filepath.Join(t.TempDir(), "job.yaml")

	r := term.run("job", "get", "close-day", "-o", "yaml")
	require.Equal(t, 0, r.code)
	edited := strings.Replace(r.stdout, "timeout: 5m", "timeout: 9m", 1)
	require.NotEqual(t, r.stdout, edited)
	require.NoError(t, os.WriteFile(file, []byte(edited), 0o600))

	r = term.run("job", "edit", "-f", file)
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "revision 4")
	sent := server.lastBody("PUT /jobs/{id}")
	require.Equal(t, "9m", sent["timeout"])
	require.Equal(t, map[string]any{"day": "2026-11-20"}, sent["input"])
	for _, field := range []string{"id", "revision", "nextFireAt", "state"} {
		require.NotContains(t, sent, field)
	}

	r = term.run("job", "edit", "-f", file)
	require.Equal(t, 5, r.code, "the file still has revision 3")
	require.Contains(t, r.stderr, "carillon job get JOB -o yaml")
	require.Equal(t, 0, term.run("job", "edit", "-f", file, "--force").code)
}

func TestJobCreate(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	const job = `{name: hello, executor: {name: shop}, handler: hello, schedule: {kind: cron, expr: "0 0 25 * * *"}}`

	r := term.pipe(job, "job", "create", "-f", "-")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "    0 0 25 * * *\n        ^^\n", "the caret stands below the mistake")

	r = term.pipe(strings.Replace(job, "25", "2", 1), "job", "create", "-f", "-", "-o", "json")
	require.Equal(t, 0, r.code, r.stderr)
	var created map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &created), "standard output is JSON and nothing else")
	require.Equal(t, "hello", created["name"])

	require.NotContains(t, r.stderr, "never fires")
	r = term.pipe(strings.Replace(job, "0 0 25 * * *", "0 0 31 2 *", 1), "job", "create", "-f", "-", "-o", "json")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Warning: the job hello never fires by itself: its schedule has no fire time from now on (0 0 31 2 *).\n")

	for text, want := range map[string]string{
		strings.Replace(job, "name: hello", "nmae: hello", 1): `a job has no field "nmae"`,
		"- a": "line 1: want an object with fields",
	} {
		r = term.pipe(text, "job", "create", "-f", "-")
		require.Equal(t, 2, r.code, text)
		require.Contains(t, r.stderr, want)
	}
}

// What is refused names what to write instead, once.
func TestJobCreateSaysWhatToDo(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	const job = `{name: hello, executor: {name: shop}, handler: hello, schedule: {kind: none}}`
	r := term.pipe(strings.Replace(job, "shop", "gone", 1), "job", "create", "-f", "-")
	require.Equal(t, 3, r.code)
	require.Contains(t, r.stderr, "See what there is with: carillon executor list\n")

	r = term.pipe(strings.Replace(job, "{name: shop}", "first", 1), "job", "create", "-f", "-")
	require.Equal(t, 1, r.code, "the command line is right, the file is wrong")
	require.Contains(t, r.stderr, "Error: body.executor: must be an object with fields")
	require.Contains(t, r.stderr, "  hint: write executor: {name: first}\n")

	r = term.pipe(strings.Replace(job, "handler: hello", "handler: xyzzy", 1), "job", "create", "-f", "-")
	require.Equal(t, 1, r.code)
	require.NotContains(t, r.stderr, "allowUnknownHandler")
	require.Equal(t, 1, strings.Count(r.stderr, "--allow-unknown-handler"), r.stderr)
}

func TestJobStates(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("job", "pause", "close-day", "--note", "why", "-o", "json")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, `"state": "paused"`)
	require.Equal(t, "why", server.lastBody("POST /jobs/{id}/pause")["note"])

	// The answer names another person's pause, and --mine keeps it.
	server.pausedBy, server.pauseNote = "anna", "disk is full"
	r = term.run("job", "pause", "close-day", "--note", "audit")
	require.Contains(t, r.stderr, "close-day is paused already, by anna (disk is full); that pause stays.")
	r = term.run("job", "get", "close-day")
	require.Regexp(t, `(?m)^Paused by +anna$`, r.stdout)
	require.Contains(t, term.run("job", "list").stdout, "anna (disk is full)")
	r = term.run("job", "resume", "--mine", "close-day")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "close-day stays paused: anna (disk is full) paused it.")
	server.pausedBy, server.pauseNote = "", ""
	for _, command := range []string{"pause", "resume"} {
		require.Contains(t, term.run("job", command, "--help").stdout, "use carillon maintenance")
	}

	// Several at once: what works is done, the first failure gives the code.
	r = term.run("job", "pause", "nope", "close-day", "broken", "-o", "name")
	require.Equal(t, 3, r.code)
	require.Equal(t, "close-day\n", r.stdout)
	require.Contains(t, r.stderr, "job nope")
	require.Contains(t, r.stderr, "job broken")

	require.Equal(t, 0, term.run("job", "resume", "close-day").code)
	require.Equal(t, "2026-11-22T02:00:00+08:00\n2026-11-23T02:00:00+08:00 dst_gap\n", term.run("job", "next", "close-day").stdout)
	require.Equal(t, 0, term.run("job", "delete", "close-day", "--yes").code)
	require.Equal(t, 3, term.run("job", "get", "close-day").code)
}

// run --wait exits by the result of the run.
func TestRunWait(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	tests := []struct {
		end  string
		code int
	}{
		{"succeeded", 0}, {"failed", 1}, {"timed_out", 1}, {"cancelled", 1}, {"lost", 1}, {"missed", 1}, {"discarded", 1}, {"excluded", 1},
	}
	for _, test := range tests {
		t.Run(test.end, func(t *testing.T) {
			server.nextRunEnds(test.end)
			r := term.run("job", "run", "close-day", "--wait", "-o", "json")
			require.Equal(t, test.code, r.code, r.stderr)
			require.Contains(t, r.stdout, `"state": "`+test.end+`"`)
			require.Contains(t, r.stderr, test.end)
		})
	}
	server.nextRunEnds("failed")
	r := term.run("job", "run", "close-day", "--wait", "-o", "json")
	require.Equal(t, 1, strings.Count(r.stderr, "disk full"), r.stderr)

	server.nextRunEnds("never")
	r = term.run("job", "run", "close-day", "--wait-timeout", "300ms")
	require.Equal(t, 124, r.code)
	require.Contains(t, r.stderr, "the run goes on")
}

func TestRunRequest(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.pipe(`{"orderId":7}`, "job", "run", "close-day", "--after", "30m", "--input", "@-", "--note", "n", "-o", "name")
	require.Equal(t, 0, r.code, r.stderr)
	require.Regexp(t, `^\d+\n$`, r.stdout)
	require.Equal(t, map[string]any{"after": "30m", "note": "n", "input": map[string]any{"orderId": 7.0}},
		server.lastBody("POST /jobs/{id}/run"))
}

// --follow: standard output is the log alone, while it grows.
func TestFollow(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	server.nextRunEnds("failed")
	r := term.run("job", "run", "close-day", "--follow")
	require.Equal(t, 1, r.code)
	require.Equal(t, "2026-11-21T04:00:00.001Z INFO  begin day=2026-11-20 rows=3\n"+
		"2026-11-21T04:00:00.002Z WARN  odd �[31m name=\"a b\"\n"+
		"2026-11-21T04:00:00.003Z INFO  end\n", r.stdout)
	require.Contains(t, r.stderr, "failed")
	require.Contains(t, r.stderr, "3 of 8 lines; 5 missing: they came faster than they could be stored.")

	r = term.run("run", "logs", "70", "-o", "json", "--level", "warn")
	require.Equal(t, 0, r.code)
	require.Contains(t, server.lastQuery("GET /runs/{id}/log"), "level=WARN")
	for line := range strings.Lines(r.stdout) {
		require.True(t, json.Valid([]byte(line)), line)
	}

	r = term.run("run", "logs", "70", "--last", "3", "-q", "odd")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, server.lastQuery("GET /runs/{id}/log"), "before=9007199254740991")
	require.Contains(t, server.lastQuery("GET /runs/{id}/log"), "limit=3")
	require.Contains(t, term.run("run", "logs", "70", "--last", "9999").stderr, "use a number from 0 to 5000")
}

// Ctrl-C ends the wait, not the run, and says so.
func TestInterrupt(t *testing.T) {
	server := newFakeServer(t)
	server.nextRunEnds("never")
	cmd := keyed(t, server).command(t.Context(), "job", "run", "close-day", "--wait")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "of job close-day")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "the run goes on. Stop it with: carillon run cancel")
	for lines.Scan() { // Wait closes the pipe, so it is read to its end first
	}
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
}

func TestAPIKeys(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("api-key", "create", "deploys", "--role", "editor", "--expires", "24h", "--executor", "shop,books", "--handler", "mail/send")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "ck_fresh\n", r.stdout, "the secret alone, for > key.txt")
	sent := server.lastBody("POST /api-keys")
	require.Equal(t, "deploys", sent["name"])
	require.Equal(t, "editor", sent["role"])
	require.NotEmpty(t, sent["expiresAt"])
	require.Equal(t, []any{"shop", "books"}, sent["executors"])
	require.Equal(t, []any{"mail/send"}, sent["callHandlers"])
	require.Contains(t, term.run("api-key", "create", "deploys", "-o", "json").stdout, `"secret": "ck_fresh"`)
	for _, args := range [][]string{{"--executor", ""}, {"--role", "caller", "--handler", ""}} {
		r = term.run(append([]string{"api-key", "create", "shop"}, args...)...)
		require.Equal(t, 2, r.code, r.stderr)
		require.Contains(t, r.stderr, "names nothing", args)
	}
	require.Equal(t, "deploys", server.lastBody("POST /api-keys")["name"], "none of these was sent")
	require.Equal(t, 0, term.run("api-key", "create", "app", "--role", "caller,timer,manager", "--executor", "shop").code)
	require.Equal(t, "caller+timer+manager", server.lastBody("POST /api-keys")["role"])
	r = term.run("api-key", "create", "deploys", "--role", "king")
	require.Equal(t, 2, r.code, r.stderr)
	require.Contains(t, r.stderr, "caller, timer, viewer, manager")

	r = term.run("api-key", "list")
	require.Equal(t, 0, r.code, r.stderr)
	require.Regexp(t, `81 +deploys +ck_fr +editor +never.*shop, mail/send`, r.stdout)
	require.Equal(t, "81\n", term.run("api-key", "list", "-o", "name").stdout)
	require.Equal(t, 0, term.run("api-key", "revoke", "81").code)
	require.Equal(t, 3, term.run("api-key", "revoke", "82").code)
}

func TestExecutors(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	require.Contains(t, term.run("executor", "list").stdout, "shop")
	r := term.run("executor", "get", "shop")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "pod-1")
	require.Contains(t, r.stdout, "close-day")
	require.Regexp(t, `nightly +1\.4\.0 +the job is another executor's`, r.stdout)

	r = term.run("executor", "token", "create", "shop", "--expires", "24h", "--max-uses", "3")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "cjt_fresh\n", r.stdout, "the secret alone, for > token.txt")
	require.EqualValues(t, 3, server.lastBody("POST /executors/{id}/join-tokens")["maxUses"])
	require.NotContains(t, server.lastBody("POST /executors/{id}/join-tokens"), "declareJobs")
	require.Equal(t, 0, term.run("executor", "token", "create", "shop", "--no-jobs").code)
	require.Equal(t, false, server.lastBody("POST /executors/{id}/join-tokens")["declareJobs"])
	require.Equal(t, "12\n", term.run("executor", "token", "list", "shop", "-o", "name").stdout)
	require.Equal(t, 0, term.run("executor", "token", "revoke", "shop", "12").code)
	require.Equal(t, 3, term.run("executor", "token", "revoke", "shop", "13").code)

	r = term.run("executor", "deny", "shop", "--serial", "5e", "--reason", "stolen")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout+r.stderr, "Denied certificate 5e")
	require.Equal(t, map[string]any{"serial": "5e", "reason": "stolen"}, server.lastBody("POST /executors/{id}/denials"))
	r = term.run("executor", "deny", "shop", "41")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "carillon executor remove 41")
	require.Equal(t, 2, term.run("executor", "deny", "shop").code)
	require.Equal(t, "31\n", term.run("executor", "denials", "shop", "-o", "name").stdout)
	require.Equal(t, 0, term.run("executor", "allow", "shop", "31").code)
}

func TestLimits(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	require.Regexp(t, `(?m)^executor\s+shop\s+2\s+2\s+7`, term.run("limit", "list").stdout)
	r := term.run("limit", "executor", "shop", "20")
	require.Equal(t, 0, r.code, r.stderr)
	require.EqualValues(t, 20, server.lastBody("PUT /executors/{id}/limit")["maxRunning"])
	require.Contains(t, term.run("limit", "executor", "shop", "none").stdout, "none")
	require.EqualValues(t, 0, server.lastBody("PUT /executors/{id}/limit")["maxRunning"])
	require.Equal(t, 0, term.run("limit", "tenant", "5", "500").code)
	require.EqualValues(t, 500, server.lastBody("PUT /tenants/{id}/limit")["maxRunning"])
	require.Equal(t, 3, term.run("limit", "tenant", "6", "500").code)
	for _, wrong := range []string{"0", "-1", "many", "1.5"} {
		r = term.run("limit", "executor", "shop", "--", wrong)
		require.Equal(t, 2, r.code, wrong)
		require.Contains(t, r.stderr, fmt.Sprintf("not %q", wrong))
	}
	require.Equal(t, 3, term.run("limit", "executor", "shopp", "5").code)
	require.Equal(t, 2, term.run("limit", "executor", "shop").code)
	var list struct{ Items []struct{ Waiting int } }
	require.NoError(t, json.Unmarshal([]byte(term.run("limit", "list", "-o", "json").stdout), &list))
	require.Equal(t, 7, list.Items[0].Waiting)
}

func TestQuotas(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("quota", "list")
	require.Regexp(t, `(?m)^jobs\s+12\s+20\s+for the tenant\s*$`, r.stdout, r.stderr)
	require.Regexp(t, `(?m)^users\s+3\s+1000\s+by default\s*$`, r.stdout)
	require.Regexp(t, `(?m)^jobs\s+12\s+30\s`, term.run("quota", "list", "5").stdout)
	for word, limit := range map[string]int{"50000": 50_000, "none": 0, "default": -1} {
		require.Equal(t, 0, term.run("quota", "set", "5", "jobs", word).code)
		want := map[string]any{"items": []any{map[string]any{"kind": "jobs", "limit": float64(limit)}}}
		require.Equal(t, want, server.lastBody("PUT /tenants/{id}/quotas"))
	}
	require.Equal(t, 2, term.run("quota", "set", "5", "jobs", "many").code)
	require.Contains(t, term.run("quota", "set", "6", "jobs", "5").stderr, "only a platform administrator")
}

func TestLicences(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	list := term.run("licenses", "--short")
	require.Equal(t, 0, list.code, list.stderr)
	for _, line := range []string{`^gorm\.io/gorm v\S+ \(MIT, go\)$`, `^antd \S+ \(MIT, npm\)$`, `^std \S+ \(BSD-3-Clause, go\)$`} {
		require.Regexp(t, "(?m)"+line, list.stdout)
	}
	one := term.run("licenses", "gorm.io/gorm").stdout
	require.Contains(t, one, "Permission is hereby granted, free of charge")
	require.NotContains(t, one, "antd")
	require.Greater(t, len(term.run("licenses").stdout), 200_000)
	require.Equal(t, 2, term.run("licenses", "nothing").code)
}

// Completion answers from the server, and is silent when it cannot.
func TestLiveCompletion(t *testing.T) {
	server := newFakeServer(t)
	require.Contains(t, keyed(t, server).run("__complete", "job", "run", "cl").stdout, "close-day\n")
	r := newTerminal(t).run("__complete", "job", "run", "cl")
	require.Equal(t, 0, r.code)
	require.Equal(t, ":4\n", r.stdout)
}

// A file may have many jobs: a list, or a document each.
func TestCreateManyJobs(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.pipe("- {name: a, handler: h}\n- {name: close-day, handler: h}\n- {name: b, handler: h}\n", "job", "create", "-f", "-", "-o", "name")
	require.Equal(t, 5, r.code, r.stderr)
	require.Equal(t, "a\nb\n", r.stdout)
	require.Contains(t, r.stderr, `job close-day: there is a job named "close-day" already`)
	require.Contains(t, r.stderr, "Created 2 of 3 jobs.")

	r = term.pipe("name: a\nhandler: h\n---\nname: b\nhandler: h\n", "job", "create", "-f", "-", "-o", "json")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, `"id": "101"`)

	var many strings.Builder
	for i := range 2300 {
		fmt.Fprintf(&many, "- {name: job-%d, handler: h}\n", i)
	}
	r = term.pipe(many.String(), "job", "create", "-f", "-", "-o", "name")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, 2300, strings.Count(r.stdout, "\n"), "a thousand at a time")
	large := `"` + strings.Repeat("x", 200<<10) + `"`
	many.Reset()
	for i := range 10 {
		fmt.Fprintf(&many, "- {name: job-%d, handler: h, input: %s}\n", i, large)
	}
	r = term.pipe(many.String(), "job", "create", "-f", "-", "-o", "name")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, 10, strings.Count(r.stdout, "\n"), "fewer when they are large")

	for text, want := range map[string]string{"": "it is empty", "- a\n": "want an object with fields", "[{name: a}, {nam: b}]": `a job has no field "nam"`} {
		r = term.pipe(text, "job", "create", "-f", "-")
		require.Equal(t, 2, r.code)
		require.Contains(t, r.stderr, want)
	}
	require.Equal(t, 2, term.pipe("[{name: a}, {name: b}]", "job", "edit", "-f", "-").code, "one at a time")
}
