package admin_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/testdata/everyfield"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/generate"
)

const elsewhere = "an option says it (TestDeclaredCallbackKinds); a marker names a method, which is a handler of its own executor"

// notOfTheCode are the settings of a job that code cannot declare, and why.
var notOfTheCode = map[string]string{
	"Script":              "a script and its policy are the console's: agents take no jobs that are declared in code",
	"LogLevel":            "it is for people who look into something; code has the level of the handler (executor.LogLevel)",
	"Owner.Name":          "whoever is told is found by address; the name is for people in the console",
	"Alert.WebhookSecret": "a secret does not belong into code",
	"Schedule.Anchor":     "follows from Every and Between",
	"SendRetry.MaxDelay":  "SendDelay doubles up to the default, a minute",
	"CodeSays":            "is the note of what code has declared",
	"OnSuccess.Executor":  elsewhere, "OnSuccess.Request": elsewhere, "OnSuccess.Connection": elsewhere,
	"OnFailure.Executor": elsewhere, "OnFailure.Request": elsewhere, "OnFailure.Connection": elsewhere,
	"PartOfSlot": "is of the settings of a part, which follow from those of the job",
}

// declaredFields names for every other setting a job that declares it, and the value
// that arrives. NAME is the job's name.
var declaredFields = map[string]struct{ job, value string }{
	"Name":                    {"all", "NAME"},
	"Description":             {"all", "has all"},
	"Labels":                  {"all", "map[env:prod team:books]"},
	"Handler":                 {"all", "NAME"},
	"Input":                   {"all", `{"day":"today"}`},
	"Schedule.Kind":           {"all", "cron"},
	"Schedule.Expr":           {"all", "0 30 2 * * *"},
	"Schedule.Dialect":        {"all", "seconds"},
	"Schedule.Every":          {"window", "15m0s"},
	"Schedule.At":             {"once", "2100-01-01T00:00:00Z"},
	"Schedule.Instants":       {"instants", "[2100-01-01T00:00:00Z 2100-01-02T00:00:00Z]"},
	"Schedule.WindowFrom":     {"window", "09:00"},
	"Schedule.WindowTo":       {"window", "17:30"},
	"Schedule.Zone":           {"all", "Asia/Shanghai"},
	"Schedule.StartAt":        {"all", "2026-01-01T00:00:00Z"},
	"Schedule.EndAt":          {"all", "2100-01-01T00:00:00Z"},
	"Schedule.Gap":            {"all", "skip"},
	"Schedule.Overlap":        {"all", "both"},
	"Schedule.Calendars":      {"all", "[freeze]"},
	"Schedule.Days":           {"all", "workdays"},
	"Schedule.JitterMax":      {"all", "5s"},
	"Misfire.Policy":          {"all", "all"},
	"Misfire.Threshold":       {"all", "1m0s"},
	"Misfire.Window":          {"all", "2h0m0s"},
	"Misfire.MaxRuns":         {"all", "7"},
	"Routing":                 {"all", "consistent_hash"},
	"RoutingKey":              {"all", "/day"},
	"Require":                 {"all", "zone=eu, !spot"},
	"Prefer":                  {"all", "cache"},
	"Blocking":                {"all", "parallel"},
	"Parallelism":             {"all", "4"},
	"MaxWaiting":              {"all", "50"},
	"Retry.MaxAttempts":       {"all", "4"},
	"Retry.Delay":             {"all", "2s"},
	"Retry.Backoff":           {"all", "2.5"},
	"Retry.MaxDelay":          {"all", "20s"},
	"SendRetry.MaxSends":      {"all", "3"},
	"SendRetry.Delay":         {"all", "3s"},
	"SendRetry.Backoff":       {"all", "2"},
	"Timeout":                 {"all", "5m0s"},
	"DispatchTimeout":         {"all", "30m0s"},
	"OnLost":                  {"all", "retry"},
	"Priority":                {"all", "-7"},
	"Owner.Email":             {"all", "books@example.com"},
	"Alert.OnFailure":         {"all", "false"},
	"Alert.IncludeNoExecutor": {"all", "false"},
	"Alert.Emails":            {"all", "[ops@example.com books@example.com]"},
	"Alert.WebhookURL":        {"all", "https://alerts.example.com/hook"},
	"Sharding.Mode":           {"shards", "fixed"},
	"Sharding.Shards":         {"shards", "8"},
	"Sharding.OnGone":         {"broadcast", "move"},
	"Sharding.Before":         {"shards", "prepare"},
	"Sharding.After":          {"shards", "collect"},
	"Sharding.Timeout":        {"shards", "2h0m0s"},
	"OnSuccess.Handler":       {"all", "NAME.succeeded"},
	"OnFailure.Handler":       {"all", "NAME.failed"},
}

// declareWithOptions is everyfield.Marked in options.
func declareWithOptions(ex *executor.Executor) {
	none := func(context.Context, everyfield.Input) error { return nil }
	at := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, options := range map[string][]executor.HandlerOption{
		"plain": {executor.Every(time.Hour)},
		"all": {
			executor.Description("has all"), executor.Cron("0 30 2 * * *"), executor.Dialect(executor.DialectSeconds), executor.Zone("Asia/Shanghai"),
			executor.ClockChanges(executor.SkipGap, executor.OverlapBoth), executor.Calendars("freeze"), executor.Days(executor.Workdays),
			executor.Jitter(5 * time.Second), executor.Between(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), at),
			executor.Misfire(executor.AllMisfires), executor.MisfireThreshold(time.Minute), executor.MisfireLimit(2*time.Hour, 7),
			executor.Input(everyfield.Input{Day: "today"}),
			executor.Retries(3), executor.RetryDelay(2 * time.Second), executor.RetryBackoff(2.5), executor.MaxRetryDelay(20 * time.Second),
			executor.Timeout(5 * time.Minute), executor.DispatchTimeout(30 * time.Minute), executor.OnLost(executor.RetryLost),
			executor.Blocking(executor.Parallel), executor.Parallelism(4), executor.MaxWaiting(50), executor.Priority(-7),
			executor.Routing(executor.ConsistentHash), executor.HashBy("/day"), executor.RequireLabels("zone=eu, !spot"), executor.PreferLabels("cache"),
			executor.SendRetries(2), executor.SendDelay(3 * time.Second),
			executor.JobLabel("team", "books"), executor.JobLabel("env", "prod"),
			executor.AlertOnFailure(false), executor.AlertNoExecutor(false), executor.AlertEmails("ops@example.com", "books@example.com"),
			executor.AlertWebhook("https://alerts.example.com/hook"), executor.Owner("books@example.com"),
			executor.OnSuccess("options-all.succeeded"), executor.OnFailure("options-all.failed"),
		},
		"once":      {executor.At(at)},
		"instants":  {executor.Instants(at, at.Add(24*time.Hour))},
		"window":    {executor.Every(15 * time.Minute), executor.Window("09:00", "17:30")},
		"shards":    {executor.Shards(8), executor.BeforeShards("prepare"), executor.AfterShards("collect"), executor.FireTimeout(2 * time.Hour)},
		"broadcast": {executor.Broadcast(), executor.OnGone(executor.MoveShard)},
	} {
		executor.HandleIn(ex, "options-"+name, none, options...)
	}
	for _, name := range []string{"prepare", "collect", "options-all.succeeded", "options-all.failed"} {
		executor.HandleFunc(ex, name, func(context.Context) error { return nil })
	}
}

// Every setting of a job can be declared by an option and by a marker and arrives in
// the stored job, or stands in notOfTheCode. A setting that is new is in neither list
// and fails here.
func TestEveryFieldOfAJob(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("testdata", "everyfield")
	out, err := generate.Dir(folder, generate.Options{})
	require.NoError(t, err)
	changes, err := out.Changes()
	require.NoError(t, err)
	require.Empty(t, changes, "go run ./executor-sdk/generate/cmd/carillon-generate ./admin/%s", folder)

	var fields []string
	fieldsOf(t, reflect.ValueOf(domain.JobSpec{}), "", func(path string, _ any) { fields = append(fields, path) })
	listed := slices.Sorted(maps.Keys(declaredFields))
	for path := range notOfTheCode {
		require.NotContains(t, listed, path)
		listed = append(listed, path)
	}
	require.ElementsMatch(t, fields, listed, "add an option and a marker, and the setting to declaredFields; or why it is not the code's to notOfTheCode")

	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			dsn := database(t, dir)
			n := startNode(t, func(c *admin.Config) { c.DataDir, c.Database = dir, dsn })
			n.do("POST", "/api/v1/calendars", map[string]any{"name": "freeze", "spec": map[string]any{}}, nil, 201)
			ex := n.startExecutor("shop", nil, func(ex *executor.Executor) {
				everyfield.RegisterMarked(ex, &everyfield.Marked{})
				declareWithOptions(ex)
			})
			refused := func() string { return fmt.Sprint(ex.Health()) }
			n.eventually(func() bool { return ex.Health() == nil }, refused)

			driver, dsn, _ := strings.Cut(dsn, ":")
			db, err := gormstore.OpenReader(gormstore.Options{Driver: driver, DSN: dsn})
			require.NoError(t, err)
			defer db.Close()
			tenant, err := db.FindTenantByName(t.Context(), auth.FirstTenant)
			require.NoError(t, err)
			for _, by := range []string{"options", "marked"} {
				stored := map[string]map[string]string{}
				for _, job := range []string{"plain", "all", "once", "instants", "window", "shards", "broadcast"} {
					v, err := db.FindJobByName(t.Context(), tenant.ID, by+"-"+job)
					require.NoError(t, err)
					stored[job] = storedFields(t, v)
				}
				for path, want := range declaredFields {
					value := strings.ReplaceAll(want.value, "NAME", by+"-"+want.job)
					require.Equal(t, value, stored[want.job][path], "%s, declared by %s", path, by)
					require.NotEqual(t, value, stored["plain"][path], "%s: that is the default, which shows nothing", path)
				}
			}
		})
	}
}

func storedFields(t *testing.T, v store.JobView) map[string]string {
	t.Helper()
	out := map[string]string{}
	fieldsOf(t, reflect.ValueOf(v.Spec), "", func(path string, value any) {
		switch x := value.(type) {
		case []byte:
			out[path] = string(x)
		case time.Time:
			out[path] = x.UTC().Format(time.RFC3339)
		case []time.Time:
			texts := make([]string, len(x))
			for i, at := range x {
				texts[i] = at.UTC().Format(time.RFC3339)
			}
			out[path] = fmt.Sprint(texts)
		case domain.Selector:
			out[path] = x.Text
		case []domain.CalendarUse:
			names := make([]string, len(x))
			for i, c := range x {
				names[i] = c.Content.Name
			}
			out[path] = fmt.Sprint(names)
		default:
			out[path] = fmt.Sprint(value)
		}
	})
	return out
}

// fieldsOf calls f for each setting, and goes into structs of settings.
func fieldsOf(t *testing.T, v reflect.Value, path string, f func(path string, value any)) {
	t.Helper()
	for i := range v.NumField() {
		name, field := path+v.Type().Field(i).Name, v.Field(i)
		switch field.Interface().(type) {
		case time.Time, domain.Selector:
			f(name, field.Interface())
		default:
			if field.Kind() == reflect.Struct {
				fieldsOf(t, field, name+".", f)
			} else {
				f(name, field.Interface())
			}
		}
	}
}
