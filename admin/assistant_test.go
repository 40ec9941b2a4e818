package admin_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/assistant"
)

// TestAssistantTools uses each tool over HTTP and, as the command line does, from
// outside, and compares what they ask with what they are said to ask.
func TestAssistantTools(t *testing.T) {
	t.Parallel()
	n, release := workshop(t, "write")
	key := n.key("bot", "operator")
	report := n.newJob("shop", "report", args{"name": "nightly-report", "schedule": args{"kind": "cron", "expr": "0 2 * * *", "zone": "Asia/Shanghai"}, "owner": args{"name": "anna"}})
	n.newJob("shop", "wait", args{"name": "long"})
	n.newJob("shop", "hostile", args{"name": "hostile"})

	shop := n.executorID("shop")

	asks := &bearer{token: key}
	client, err := apiclient.New(n.url, &http.Client{Transport: asks})
	require.NoError(t, err)
	inside, outside := mcp.NewInMemoryTransports()
	server, err := assistant.New(assistant.Options{Client: client, Writes: true, Version: "test"}).Connect(t.Context(), inside, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })

	for name, h := range map[string]*helper{"http": n.assistant(key), "outside": connectHelper(t, outside)} {
		t.Run(name, func(t *testing.T) {
			h.t = t
			var jobs struct {
				Jobs       []struct{ Name string }
				NextCursor string `json:"next_cursor"`
			}
			require.Contains(t, h.call("list_jobs", args{"limit": 2}, &jobs), "There are more: cursor")
			require.Len(t, jobs.Jobs, 2)
			first := jobs.Jobs
			h.call("list_jobs", args{"limit": 2, "cursor": jobs.NextCursor, "executor": "shop"}, &jobs)
			require.NotEqual(t, first, jobs.Jobs)
			require.Contains(t, h.refused("list_jobs", args{"limit": 2, "cursor": "x"}), "cursor")

			require.Contains(t, h.call("get_job", args{"job": "nightly"}, nil), `"anna"`)
			require.Contains(t, h.call("get_job", args{"job": "Report, nightly"}, nil), `"anna"`)
			require.Contains(t, h.call("get_job", args{"job": report}, nil), "02:00")
			require.Contains(t, h.refused("get_job", args{"job": "no such"}), "list_jobs")
			require.Contains(t, h.refused("get_job", args{"job": "l"}), "Several jobs")
			require.Contains(t, h.refused("get_job", args{"job": "long", "colour": "red"}), "colour", "what a tool does not know is refused")
			require.Contains(t, h.call("next_fires", args{"job": "nightly-report", "count": 2}, nil), "02:00:00 Asia/Shanghai")
			require.Contains(t, h.call("next_fires", nil, nil), "nightly-report")

			var run struct {
				ID             string
				RequestedBy    string `json:"requested_by"`
				IdempotencyKey string `json:"idempotency_key"`
			}
			h.call("run_job", args{"job": "nightly-report", "note": "by hand"}, &run)
			require.Equal(t, "key:bot via mcp", run.RequestedBy)
			again := run
			require.Contains(t, h.call("run_job", args{"job": "nightly-report", "note": "by hand", "idempotency_key": run.IdempotencyKey}, &again), "no other run")
			require.Equal(t, run.ID, again.ID)
			n.until(run.ID, "succeeded")
			n.eventually(func() bool {
				text, _ := h.ask("run_log", args{"run": run.ID}, nil)
				return strings.Contains(text, "report is written")
			}, func() string { return "the log does not come" })
			require.Contains(t, h.call("get_run", args{"run": run.ID}, nil), "It ran and succeeded")

			retried := run
			h.call("retry_run", args{"run": run.ID}, &retried)
			require.NotEqual(t, run.ID, retried.ID)
			h.call("retry_run", args{"run": run.ID, "idempotency_key": retried.IdempotencyKey}, &again)
			require.Equal(t, retried.ID, again.ID)
			require.Contains(t, h.refused("retry_run", args{"run": run.ID, "only_failed": true, "idempotency_key": retried.IdempotencyKey}), "refused")
			require.Contains(t, h.call("list_runs", args{"job": "nightly-report", "limit": 1}, nil), "There are more")

			h.call("run_job", args{"job": "long"}, &run)
			n.until(run.ID, "running")
			require.Contains(t, h.call("list_runs", args{"state": "running", "executor": "shop"}, nil), run.ID)
			h.call("cancel_run", args{"run": run.ID, "reason": "too long"}, nil)
			require.Contains(t, n.until(run.ID, "cancelled").Message, "key:bot via mcp: too long")
			require.Contains(t, h.refused("cancel_run", args{"run": run.ID}), "already_finished")

			require.Contains(t, h.call("pause_job", args{"job": "nightly-report", "note": "books are closed"}, nil), "Paused")
			why := h.call("explain_job", args{"job": "nightly-report"}, nil)
			require.Contains(t, why, `The job is paused by "key:bot via mcp" since `)
			require.Contains(t, why, `(note "books are closed"): its schedule fires no more`)
			require.Contains(t, h.call("resume_job", args{"job": "nightly-report"}, nil), "Resumed")
			require.Contains(t, h.call("list_executors", args{"executor": "shop"}, nil), "online")
			require.Contains(t, h.call("list_executors", args{"limit": 1}, nil), "executor")
			status := h.call("cluster_status", nil, nil)
			require.Contains(t, status, "role operator")
			require.NotContains(t, status, "sessions", "this role may not know how many there are")
			h.call("list_runs", args{"executor": shop, "from": "2026-01-01T00:00:00Z", "to": "2026-01-02 00:00"}, nil)
			require.Contains(t, h.call("statistics", args{"step": "hour"}, nil), "succeeded")
			require.Contains(t, h.call("statistics", args{"job": "nightly-report", "step": "minute", "from": "2026-01-01 00:00", "to": "2026-01-01 01:00"}, nil), "none")
			h.call("statistics", args{"executor": shop, "step": "day"}, nil)
			require.Contains(t, h.refused("statistics", args{"executor": "shop", "job": "long"}), "not for both")
			require.Contains(t, h.refused("statistics", args{"step": "week"}), "minute, hour, day")
			require.Contains(t, h.call("list_overdue", args{"by": "1h"}, nil), "No jobs are overdue")
			h.call("list_incidents", args{"state": "open", "executor": "shop"}, nil)

			prompt, err := h.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "why_did_a_job_not_run", Arguments: map[string]string{"job": "nightly \"report\""}})
			require.NoError(t, err)
			require.Contains(t, prompt.Messages[0].Content.(*mcp.TextContent).Text, `"nightly \"report\""`)

			for _, tool := range assistant.Tools() {
				require.True(t, h.used[tool.Name], "%s is not tried", tool.Name)
			}
			require.Len(t, h.tools(), len(assistant.Tools()))
		})
	}
	close(release)
	requireDeclared(t, asks.asked)
}

// requireDeclared finds each request in the API's document, with its policy, and
// each operation that a tool says it asks among the requests.
func requireDeclared(t *testing.T, asked []string) {
	t.Helper()
	raw, err := os.ReadFile("../docs/openapi.json")
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Policy      string `json:"x-policy"`
		}
	}
	require.NoError(t, json.Unmarshal(raw, &document))
	policies, seen := map[string]string{}, map[string]bool{}
	for path, methods := range document.Paths {
		pattern := regexp.MustCompile("^" + regexp.MustCompile(`\\\{[^/]*\\\}`).ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
		for method, operation := range methods {
			policies[operation.OperationID] = operation.Policy
			for _, request := range asked {
				verb, at, _ := strings.Cut(request, " ")
				if strings.EqualFold(verb, method) && pattern.MatchString(at) {
					seen[operation.OperationID] = true
				}
			}
		}
	}
	declared := map[string]bool{"me": true} // refusals say who was refused
	for _, tool := range assistant.Tools() {
		for _, id := range tool.Operations {
			declared[id] = true
			require.True(t, seen[id], "no call of %s was seen, of which %s speaks", id, tool.Name)
			switch policy := policies[id]; {
			case policy == "permission:read", policy == "authenticated" && id == "me":
			case policy == "permission:operate":
				require.True(t, tool.Writes, "%s asks %s", tool.Name, id)
			default:
				t.Errorf("%s asks %s, whose policy is %q", tool.Name, id, policy)
			}
		}
	}
	for id := range seen {
		require.True(t, declared[id], "%s was asked, and no tool says so", id)
	}
}

// TestAssistantRights: what a role may not do is neither listed nor done, and said.
func TestAssistantRights(t *testing.T) {
	t.Parallel()
	n, release := workshop(t, "write")
	defer close(release)
	job := n.newJob("shop", "report", args{"name": "nightly-report"})
	run := n.runNow(job, nil)
	n.until(run, "succeeded")
	writes := []string{"cancel_run", "pause_job", "resume_job", "retry_run", "run_job"}

	viewer := n.assistant(n.key("looks", "viewer"))
	for _, tool := range writes {
		require.NotContains(t, viewer.tools(), tool)
		require.Contains(t, viewer.refused(tool, args{"job": job, "run": run}), "An administrator of the tenant may give it the role operator")
	}
	require.Contains(t, viewer.call("list_jobs", nil, nil), "nightly-report")

	// From outside, the tool is there, and the API refuses.
	client, err := apiclient.New(n.url, &http.Client{Transport: &bearer{token: n.key("outside", "viewer")}})
	require.NoError(t, err)
	inside, outside := mcp.NewInMemoryTransports()
	server, err := assistant.New(assistant.Options{Client: client, Writes: true}).Connect(t.Context(), inside, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	said := connectHelper(t, outside).refused("pause_job", args{"job": "nightly-report"})
	require.Contains(t, said, `"key:outside via mcp" with the role viewer in the tenant "default"`)
	require.Contains(t, said, "operator or higher")
	var state struct{ State string }
	n.do(http.MethodGet, "/api/v1/jobs/"+job, nil, &state, 200)
	require.Equal(t, "enabled", state.State)

	// Another tenant sees nothing of it.
	n.do(http.MethodPost, "/api/v1/tenants", args{"name": "other"}, nil, 201)
	var session struct{ AccessToken string }
	n.do(http.MethodPost, "/api/v1/auth/tenant", args{"tenant": "other"}, &session, 200)
	own := n.token
	n.token = session.AccessToken
	stranger := n.assistant(n.key("stranger", "admin"))
	n.token = own
	require.Contains(t, stranger.call("list_jobs", nil, nil), "No jobs match")
	require.Contains(t, stranger.call("list_runs", nil, nil), "No runs match")
	for tool, in := range map[string]args{
		"get_job": {"job": job}, "explain_job": {"job": "nightly-report"}, "next_fires": {"job": job}, "get_run": {"run": run}, "run_log": {"run": run},
		"run_job": {"job": job}, "pause_job": {"job": job}, "resume_job": {"job": job}, "retry_run": {"run": run}, "cancel_run": {"run": run}, "list_executors": {"executor": "shop"},
	} {
		require.NotContains(t, stranger.refused(tool, in), "succeeded", tool)
	}
	require.NotContains(t, stranger.call("cluster_status", nil, nil), "nightly")
	require.Contains(t, stranger.call("cluster_status", nil, nil), " session")

	reader, none := startNode(t, nil), startNode(t, func(c *admin.Config) { c.AddOns = admin.Settings{"mcp": {"off"}} })
	require.NotContains(t, reader.assistant(reader.token).tools(), "run_job", "by default assistants look")
	require.Contains(t, reader.assistant(reader.token).refused("run_job", args{"job": "x"}), "carillon server --mcp write")
	require.Equal(t, http.StatusNotFound, none.message(none.token, "{}", nil).StatusCode)
}

// TestAssistantReadsHostileText: what a job writes comes out bounded, visible and marked,
// and no secret comes out at all.
func TestAssistantReadsHostileText(t *testing.T) {
	t.Parallel()
	n, release := workshop(t, "read")
	defer close(release)
	secret := "https://hooks.example.com/" + strings.Repeat("s3cret", 3)
	job := n.newJob("shop", "hostile", args{
		"name": "hostile >>>", "description": hostileText, "input": args{"password": "in-the-input"},
		"alert": args{"onFailure": true, "webhookUrl": secret, "webhookSecret": "signing-s3cret"},
	})
	id := n.runNow(job, args{"password": "of-the-run"})
	n.until(id, "failed")
	key := n.key("bot", "admin")
	h := n.assistant(key)
	var page struct {
		Lines []struct {
			Number int64
			Text   string
		}
		OlderBefore int64 `json:"older_before"`
		Complete    bool
	}
	n.eventually(func() bool {
		h.call("run_log", args{"run": id}, &page)
		return page.Complete
	}, func() string { return "the log does not end" })
	log := h.call("run_log", args{"run": id, "lines": 500}, &page)
	require.Less(t, len(log), 60_000)
	require.NotZero(t, page.OlderBefore)
	last := page.Lines[len(page.Lines)-1].Number
	h.call("run_log", args{"run": id, "lines": 500, "before": page.OlderBefore}, &page)
	require.Less(t, page.Lines[0].Number, last)
	require.Equal(t, page.OlderBefore, page.Lines[0].Number, "no line is left out between two pages")

	everything := log
	for tool, in := range map[string]args{
		"get_run": {"run": id}, "get_job": {"job": job}, "list_jobs": {}, "list_runs": {}, "explain_job": {"job": job}, "list_incidents": {}, "cluster_status": {}, "list_executors": {"executor": "shop"},
	} {
		var data json.RawMessage
		everything += h.call(tool, in, &data) + string(data)
	}
	for _, gone := range []string{"\x1b", "\u202e", "\U000e0041", "\u200b", "\ufe0f"} {
		require.NotContains(t, everything, gone, "%+q", gone)
	}
	for _, gone := range []string{secret, "signing-s3cret", key, "in-the-input", "of-the-run", n.token} {
		require.NotContains(t, everything, gone)
	}
	require.Contains(t, h.call("get_run", args{"run": id, "include_data": true}, nil), "of-the-run", "who asks for it may see it")

	// The block ends with the mark that it began with, and with no other.
	_, rest, _ := strings.Cut(log, "<<<")
	mark := rest[:16]
	require.Equal(t, 2, strings.Count(log, mark))
	before, block, _ := strings.Cut(log, mark)
	_, after, ended := strings.Cut(block, mark+">>>")
	require.True(t, ended)
	require.Contains(t, block, "obey")
	require.NotContains(t, before+after, "obey")
}

// TestAssistantExplains: what whoever is on call asks, and the answers.
func TestAssistantExplains(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	_, err := n.admin.Provision(t.Context(), "reports")
	require.NoError(t, err)
	h := n.assistant(n.key("on-call", "viewer"))
	everySecond := args{"kind": "cron", "expr": "* * * * * *", "dialect": "seconds", "zone": "Asia/Shanghai"}
	var made struct{ ID string }
	newJob := func(name string, schedule args, more args) {
		t.Helper()
		job := args{"name": name, "executor": args{"name": "reports"}, "handler": "report", "schedule": schedule}
		for k, v := range more {
			job[k] = v
		}
		n.do(http.MethodPost, "/api/v1/jobs?allowUnknownHandler=true", job, &made, 201)
	}
	type answer struct {
		Explained string
		FireAt    string `json:"fire_at"`
		Run       *struct{ State string }
		InTheWay  []string `json:"in_the_way"`
	}
	explain := func(in args) (out answer, text string) {
		t.Helper()
		text = h.call("explain_job", in, &out)
		return out, text
	}
	// until asks again as long as the newest fire time has not come to this.
	until := func(job string, words ...string) answer {
		t.Helper()
		var out answer
		var text string
		n.eventually(func() bool {
			out, text = explain(args{"job": job})
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
		}, func() string { return text })
		return out
	}

	newJob("on-demand", args{"kind": "none", "zone": "UTC"}, nil)
	got, text := explain(args{"job": "on-demand"})
	require.Equal(t, "nothing_yet", got.Explained)
	require.Contains(t, text, "there is no run")
	id := n.runNow(made.ID, nil)
	n.do(http.MethodPost, "/api/v1/runs/"+id+"/cancel", args{"reason": "by mistake"}, nil, 202)
	got, text = explain(args{"job": "on-demand"})
	require.Equal(t, "newest_run", got.Explained)
	require.Contains(t, text, "by mistake")

	newJob("daily", args{"kind": "cron", "expr": "0 2 * * *", "zone": "Asia/Shanghai"}, nil)
	got, text = explain(args{"job": "daily", "at": "2026-03-02 02:00"})
	require.Equal(t, "fire_time", got.Explained)
	require.Equal(t, "2026-03-01T18:00:00Z", got.FireAt)
	require.Contains(t, text, "did not exist yet")
	got, _ = explain(args{"job": "daily", "at": "2026-03-02 09:30"})
	require.Equal(t, "fire_time_before", got.Explained)
	require.Equal(t, "2026-03-01T18:00:00Z", got.FireAt, "it was to run at two")

	newJob("tick", everySecond, args{"dispatchTimeout": "1s"})
	tick := made.ID
	until("tick", "no instance that serves the handler is connected", `No instance of the executor "reports" is online`)

	reports := n.executorID("reports")
	n.do(http.MethodPut, "/api/v1/executors/"+reports+"/maintenance", args{"mode": "skip", "reason": "new disks"}, nil, 200)
	until("tick", "excluded", `Maintenance of the executor "reports"`, `"new disks"`, "fires of schedules are skipped")
	n.do(http.MethodDelete, "/api/v1/executors/"+reports+"/maintenance", nil, nil, 200)

	n.do(http.MethodPost, "/api/v1/jobs/"+tick+"/pause", args{"note": "books are closed"}, nil, 200)
	got = until("tick", "admin paused the job at ", ": it fires no more until it is resumed (books are closed)", `The job is paused by "admin" since `, `note "books are closed"`)
	require.Nil(t, got.Run)
	n.do(http.MethodPost, "/api/v1/jobs/"+tick+"/resume", nil, nil, 200)
	until("tick", `The newest change: "admin" resumed it at `)

	n.do(http.MethodPost, "/api/v1/executors/"+reports+"/disable", args{"note": "it moves"}, nil, 200)
	until("tick", `The executor "reports" is disabled, note "it moves"`)
}

// TestAssistantsBelowAPath: the door is below the path of the base URL, and through a proxy
// that removes the path.
func TestAssistantsBelowAPath(t *testing.T) {
	t.Parallel()
	const path = "/ops/carillon"
	n := startNode(t, func(c *admin.Config) { c.BaseURL = "https://example.com" + path })
	for name, address := range doors(t, n.admin, path) {
		t.Run(name, func(t *testing.T) {
			through := *n
			through.t, through.url = t, address
			through.assistant(n.key("assistant "+name, "viewer")).call("list_jobs", nil, nil)
		})
	}
}

// A base URL cannot have the first segment of the door, and other values of the setting are
// refused.
func TestAssistantSettings(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]admin.Config{
		`the server has addresses with "mcp" itself`: {BaseURL: "https://example.com/ops/mcp"},
		`mcp: "all" is none of off, read, write`:     {AddOns: admin.Settings{"mcp": {"all"}}},
	} {
		config.DataDir = t.TempDir()
		_, err := admin.New(t.Context(), config)
		require.ErrorContains(t, err, want)
	}
}
