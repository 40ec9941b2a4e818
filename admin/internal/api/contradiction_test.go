package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// TestContradictionsAreRefused: what would be ignored in silence is told, and
// the same job without it is taken.
func TestContradictionsAreRefused(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	kind := func(fields map[string]any) func(map[string]any) { return with("schedule", fields) }
	tests := []struct {
		name, location, says string
		change               []func(map[string]any)
	}{
		{"parallelism of a serial job", "body.parallelism", "needs blocking parallel; leave it out for serial", []func(map[string]any){with("parallelism", 3)}},
		{"every with cron", "body.schedule.every", "is for schedules of kind fixed_rate, fixed_delay, daily_window; leave it out for cron", []func(map[string]any){with("schedule.every", "5s")}},
		{"expr with none", "body.schedule.expr", "is for schedules of kind cron; leave it out for none", []func(map[string]any){kind(map[string]any{"kind": "none", "expr": "0 2 * * *"})}},
		{"at with a rate", "body.schedule.at", "is for schedules of kind once", []func(map[string]any){kind(map[string]any{"kind": "fixed_rate", "every": "5s", "at": "2027-01-01T00:00:00Z"})}},
		{"after with cron", "body.schedule.after", "is for schedules of kind once", []func(map[string]any){with("schedule.after", "5s")}},
		{"anchor with cron", "body.schedule.anchor", "is for schedules of kind fixed_rate, fixed_delay", []func(map[string]any){with("schedule.anchor", "2027-01-01T00:00:00Z")}},
		{"instants with cron", "body.schedule.instants", "is for schedules of kind instants", []func(map[string]any){with("schedule.instants", []string{"2027-01-01T00:00:00Z"})}},
		{"window with a rate", "body.schedule.windowFrom", "is for schedules of kind daily_window", []func(map[string]any){kind(map[string]any{"kind": "fixed_rate", "every": "5s", "windowFrom": "08:00"})}},
		{"a gap of a rate", "body.schedule.dstGap", "is for schedules of kind cron, daily_window; leave it out for fixed_rate", []func(map[string]any){kind(map[string]any{"kind": "fixed_rate", "every": "5s", "dstGap": "skip"})}},
		{"an overlap of a window", "body.schedule.dstOverlap", "is for schedules of kind cron; leave it out for daily_window", []func(map[string]any){kind(map[string]any{"kind": "daily_window", "every": "5m", "windowFrom": "08:00", "windowTo": "18:00", "dstOverlap": "both"})}},
		{"maxRuns with skip", "body.misfire.maxRuns", "needs the policy all; leave it out for skip", []func(map[string]any){with("misfire", map[string]any{"maxRuns": 3})}},
		{"window with once_now", "body.misfire.window", "needs the policy all; leave it out for once_now", []func(map[string]any){with("misfire", map[string]any{"policy": "once_now", "window": "1h"})}},
		{"jitter beyond the rate", "body.schedule.jitter", "is longer than every, so that runs would overtake each other; at most 5s", []func(map[string]any){kind(map[string]any{"kind": "fixed_rate", "every": "5s", "jitter": "1h"})}},
		{"an instant", "body.schedule.every", "is less than a millisecond", []func(map[string]any){kind(map[string]any{"kind": "fixed_rate", "every": "1ns"})}},
		{"days of no calendar", "body.schedule.calendarDays", "needs calendars; leave it out", []func(map[string]any){with("schedule.calendarDays", "workdays")}},
		{"an end before the start", "body.schedule.endAt", "is before startAt", []func(map[string]any){with("schedule.startAt", "2027-01-02T00:00:00Z"), with("schedule.endAt", "2027-01-01T00:00:00Z")}},
		{"the end of time", "body.schedule.endAt", "must lie in the years from 1970 to 9998", []func(map[string]any){with("schedule.endAt", "9999-12-31T00:00:00Z")}},
	}
	for _, tt := range tests {
		w.run(t, tt.name, func(t *testing.T) {
			p := w.call("acme/editor", "POST", "/jobs", jobBody("x", e, tt.change...)).problem(422, "validation_failed")
			require.Equal(t, tt.location, p.Errors[0].Location)
			require.Contains(t, p.Errors[0].Message, tt.says)
			if strings.HasPrefix(tt.location, "body.schedule.") {
				body := jobBody("x", e, tt.change...)
				preview := w.call("acme/viewer", "POST", "/schedules/preview", map[string]any{"schedule": body["schedule"]}).problem(422, "validation_failed")
				require.Contains(t, locations(preview.Errors), tt.location)
			}
		})
	}
	for name, change := range map[string]func(map[string]any){
		"parallel":          func(b map[string]any) { b["blocking"], b["parallelism"] = "parallel", 3 },
		"all":               with("misfire", map[string]any{"policy": "all", "maxRuns": 3, "window": "1h"}),
		"jitter in rate":    kind(map[string]any{"kind": "fixed_rate", "every": "5s", "jitter": "5s"}),
		"a gap of a window": kind(map[string]any{"kind": "daily_window", "every": "5m", "windowFrom": "08:00", "windowTo": "18:00", "dstGap": "skip"}),
		"nulls are empty":   func(b map[string]any) { with("schedule.at", nil)(b); with("schedule.anchor", nil)(b) },
	} {
		w.job("acme", name, e, change)
	}
}

// TestStoredContradictionsStayReadable: a job of an older version is shown, and
// an edit is told what to leave out.
func TestStoredContradictionsStayReadable(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	job := w.job("acme", "old", e)
	jid, err := domain.ParseID[domain.JobID](job.ID)
	require.NoError(t, err)
	v, err := w.store.FindJob(t.Context(), e.TenantID, jid)
	require.NoError(t, err)
	v.Spec.Parallelism = 3
	_, err = w.store.UpdateJob(t.Context(), store.UpdateJobParams{
		Tenant: e.TenantID, ID: jid, Executor: e.ID, Spec: v.Spec, Source: v.Source, By: "test", Next: timing.Next, Plan: w.deps.Plan,
	})
	require.NoError(t, err)
	require.Equal(t, 3, into[Job](w.call("acme/viewer", "GET", "/jobs/"+job.ID, nil).is(200)).Parallelism)
	w.call("acme/editor", "PUT", "/jobs/"+job.ID, jobBody("old", e, with("parallelism", 3)), header{"If-Match": "*"}).problem(422, "validation_failed")
	w.call("acme/editor", "PUT", "/jobs/"+job.ID, jobBody("old", e), header{"If-Match": "*"}).is(200)
}

// TestBodiesThatSayOneThingTwice: which of the two counts differs from reader
// to reader.
func TestBodiesThatSayOneThingTwice(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	path := "/jobs/" + w.job("acme", "nightly", e).ID + "/run"
	for location, body := range map[string]string{
		"body.note":            `{"note":"a","note":"b"}`,
		"body.input.a":         `{"input":{"a":1,"b":2,"a":3}}`,
		"body.input.list[1].a": `{"input":{"list":[{"a":1},{"a":1,"a":2}]}}`,
		"body.input.aa":        `{"input":{"aa":1,"\u0061a":2}}`,
	} {
		w.run(t, location, func(t *testing.T) {
			p := w.call("acme/operator", "POST", path, body).problem(400, "malformed_json")
			require.Equal(t, location, p.Errors[0].Location)
			require.Equal(t, "comes twice", p.Errors[0].Message)
			require.Contains(t, p.Detail, "line 1, column ")
		})
	}
	w.call("acme/operator", "POST", path, `{"input":{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":1}]}}`).is(201)
	require.Empty(t, w.call("acme/operator", "POST", path, `{"note":"a",`).problem(400, "malformed_json").Errors[0].Hint)
}

// TestDeepBodies: what would cost a hundred times its size is refused where it
// begins to, and brackets in texts are no nesting.
func TestDeepBodies(t *testing.T) {
	w := newWorld(t)
	path := "/jobs/" + w.job("acme", "nightly", w.executor("acme", "shop")).ID + "/run"
	nested := func(levels int) string {
		return `{"input":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}`
	}
	w.call("acme/operator", "POST", path, nested(199)).is(201)
	for _, body := range []string{nested(200), nested(20_000), `{"input":` + strings.Repeat(`{"a":`, 500_000)[:1_000_000]} {
		p := w.call("acme/operator", "POST", path, body).problem(400, "malformed_json")
		require.Equal(t, "body", p.Errors[0].Location)
		require.Equal(t, "is nested deeper than 200 levels", p.Errors[0].Message)
		require.NotNil(t, p.Errors[0].Position)
	}
	text, err := json.Marshal(map[string]string{"input": strings.Repeat(`"[{\`, 1000)})
	require.NoError(t, err)
	w.call("acme/operator", "POST", path, string(text)).is(201)
}

// TestNumbersThatDoNotFit tells the field, not the name of a type of ours.
func TestNumbersThatDoNotFit(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	raw := `{"name":"x","executor":{"name":"` + e.Name + `"},"handler":"h","schedule":{"kind":"none"},"blocking":"parallel","parallelism":99999999999999999999}`
	p := w.call("acme/editor", "POST", "/jobs", raw).problem(422, "validation_failed")
	require.Equal(t, "body.parallelism", p.Errors[0].Location)
	require.Contains(t, p.Errors[0].Message, "too large")
	require.NotContains(t, p.Detail, "Go struct")
}

// TestMissingObjectsAreToldForPeople: no step of ours in an answer.
func TestMissingObjectsAreToldForPeople(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	for path, detail := range map[string]string{
		"/jobs/7": "there is no such job", "/runs/7": "there is no run 7", "/executors/7": "there is no such executor",
		"/calendars/7": "there is no such calendar", "/scripts/7": "there is no such script",
	} {
		require.Equal(t, detail, w.call("acme/viewer", "GET", path, nil).problem(404, "not_found").Detail, path)
	}
	path := "/jobs/" + w.job("acme", "nightly", e).ID + "/run"
	for _, id := range []string{"7", "nonsense"} {
		p := w.call("acme/operator", "POST", path, map[string]any{"instanceId": id}).problem(404, "not_found")
		require.Equal(t, "body.instanceId: there is no such instance", p.Detail)
		require.Equal(t, "body.instanceId", p.Errors[0].Location)
	}
}
