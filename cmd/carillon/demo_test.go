package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
)

// buildShop builds the sample shop.
func buildShop(t *testing.T) string {
	t.Helper()
	shop := filepath.Join(t.TempDir(), "sample-shop")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", shop, "../../examples/sample-shop")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	return shop
}

// runningDemo is a process of the demo.
type runningDemo struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	url   string
	token string
}

func startDemo(t *testing.T, shop, data string) *runningDemo {
	t.Helper()
	d := &runningDemo{t: t, cmd: exec.Command(program, "demo", "--shop", shop, "--data", data, "--http", "127.0.0.1:0", "--executors", "127.0.0.1:0")}
	out, err := d.cmd.StdoutPipe()
	require.NoError(t, err)
	d.lines = bufio.NewScanner(out)
	require.NoError(t, d.cmd.Start())
	t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	d.url = d.find(`web UI +(\S+)`)
	raw, err := json.Marshal(map[string]string{"username": "admin", "password": d.find(`password +(\S+)`)})
	require.NoError(t, err)
	var login struct{ AccessToken string }
	d.call(http.MethodPost, "/auth/login", raw, &login)
	d.token = login.AccessToken
	return d
}

// find reads on until a line matches, and returns the group.
func (d *runningDemo) find(pattern string) string {
	d.t.Helper()
	find := regexp.MustCompile(pattern)
	for d.lines.Scan() {
		if found := find.FindStringSubmatch(d.lines.Text()); found != nil {
			return found[1]
		}
	}
	require.FailNow(d.t, "the demo ended without saying: "+pattern)
	return ""
}

func (d *runningDemo) call(method, path string, body []byte, out any) {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.t.Context(), method, d.url+"/api/v1"+path, bytes.NewReader(body))
	require.NoError(d.t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+d.token)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(d.t, err)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(d.t, err)
	require.Equal(d.t, http.StatusOK, answer.StatusCode, string(raw))
	require.NoError(d.t, json.Unmarshal(raw, out))
}

// stop ends the demo, and returns what else it said.
func (d *runningDemo) stop() (rest string) {
	d.t.Helper()
	require.NoError(d.t, d.cmd.Process.Signal(syscall.SIGINT))
	for d.lines.Scan() {
		rest += d.lines.Text() + "\n"
	}
	require.NoError(d.t, d.cmd.Wait())
	return rest
}

// TestTheDemoShowsAWeek: the first start imports a week of runs that say that they are samples. It
// has a job that fails since yesterday, one that became slow and an instance that died. verify
// finds no fault, and the second start imports nothing.
func TestTheDemoShowsAWeek(t *testing.T) {
	shop, data := buildShop(t), t.TempDir()
	d := startDemo(t, shop, data)
	require.Regexp(t, `^1\d{4}$`, d.find(`Imported (\d+) runs of the last week. They are sample data`))

	type state struct{ State, Cause, RequestedBy string }
	type job struct {
		ID, Name   string
		Schedule   struct{ Kind string }
		RecentRuns []state
		Stats7d    struct{ Runs, Failed, P95Ms int }
	}
	type list[T any] struct{ Items []T }
	var jobs list[job]
	d.call(http.MethodGet, "/jobs?limit=50&kind=job&recent=60", nil, &jobs)
	ids, scheduled, peals := map[string]string{}, 0, 0
	for _, j := range jobs.Items {
		ids[j.Name] = j.ID
		if j.Schedule.Kind != "none" { // the others are called and timed
			scheduled++
		}
		if len(j.RecentRuns) > 0 {
			peals++
		}
	}
	require.Equal(t, 30, scheduled)
	require.GreaterOrEqual(t, peals, 27)
	var payouts, search job
	d.call(http.MethodGet, "/jobs/"+ids["payout-file"], nil, &payouts)
	require.GreaterOrEqual(t, payouts.Stats7d.Failed, 5)
	for _, r := range payouts.RecentRuns[:5] {
		require.Equal(t, "failed", r.State)
	}
	d.call(http.MethodGet, "/jobs/"+ids["search-index"], nil, &search)
	require.Greater(t, search.Stats7d.Runs, 2000)

	var runs list[state]
	d.call(http.MethodGet, "/runs?cause=import&limit=50", nil, &runs)
	require.Len(t, runs.Items, 50)
	for _, r := range runs.Items {
		require.Equal(t, "sample data", r.RequestedBy)
	}
	from := time.Now().UTC().Add(-8 * 24 * time.Hour).Format(time.RFC3339)
	var byHour struct{ Items []struct{ Runs int } }
	d.call(http.MethodGet, "/statistics?step=hour&from="+from, nil, &byHour)
	require.GreaterOrEqual(t, len(byHour.Items), 168)
	var byError struct {
		Groups []struct {
			Name     string
			Failures int
		}
	}
	require.Eventually(t, func() bool { // failures are counted some seconds after the import
		d.call(http.MethodGet, "/statistics?groupBy=error&from="+from, nil, &byError)
		return len(byError.Groups) >= 3
	}, time.Minute, 200*time.Millisecond)
	var executors list[struct{ ID, Name string }]
	d.call(http.MethodGet, "/executors?q=warehouse", nil, &executors)
	var instances list[struct{ Name, GoneReason string }]
	d.call(http.MethodGet, "/executors/"+executors.Items[0].ID+"/instances?includeGone=true", nil, &instances)
	require.Contains(t, instances.Items, struct{ Name, GoneReason string }{"warehouse-2", "its lease ran out"})

	output, err := exec.CommandContext(t.Context(), program, "verify", "--since", "168h", "--data", data).CombinedOutput()
	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "runs were imported after they had ended: they are not judged")
	d.stop()

	second := startDemo(t, shop, data)
	require.NotContains(t, second.stop(), "Imported")
	state2, err := loadDemoState(data, "")
	require.NoError(t, err)
	require.Zero(t, state2.HistoryUntil)
}

// TestADemoWithoutTheShop goes on without a week of runs, and imports it at a later start.
func TestADemoWithoutTheShop(t *testing.T) {
	var out strings.Builder
	state := &demoState{HistoryUntil: time.Now()}
	node, err := admin.New(t.Context(), admin.Config{DataDir: t.TempDir(), HTTPAddress: "127.0.0.1:0", ExecutorAddress: "127.0.0.1:0"})
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close()) }()
	require.NoError(t, importHistory(t.Context(), &out, t.TempDir(), node, state, time.Millisecond))
	require.Contains(t, out.String(), "0 of 27 are there")
	require.NotZero(t, state.HistoryUntil)
}

// TestThePasswordOfADemo: that of the operator, or a random one; a later start goes on
// with the one that the first administrator has.
func TestThePasswordOfADemo(t *testing.T) {
	dir := t.TempDir()
	for _, given := range []string{"a long demo password", "", "another one"} {
		state, err := loadDemoState(dir, given)
		require.NoError(t, err)
		require.Equal(t, "a long demo password", state.Password)
	}
	one, err := loadDemoState(t.TempDir(), "")
	require.NoError(t, err)
	other, err := loadDemoState(t.TempDir(), "")
	require.NoError(t, err)
	require.NotEqual(t, one.Password, other.Password)
}
