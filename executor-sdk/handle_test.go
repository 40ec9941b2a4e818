package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

type closeDay struct {
	Day string `json:"day" required:"true"`
}

type report struct {
	Orders int `json:"orders"`
}

func newTest(t *testing.T) *Executor {
	t.Helper()
	ex, err := New(Config{Name: "shop", Addresses: []string{"127.0.0.1:1"}, Token: "cjt_x", JournalDir: t.TempDir()})
	require.NoError(t, err)
	return ex
}

func closeDayFunc(_ context.Context, in closeDay) (report, error) {
	return report{Orders: len(in.Day)}, nil
}

func TestHandleDeclaresJobs(t *testing.T) {
	ex := newTest(t)
	Handle(ex, "close-day", closeDayFunc,
		Description("closes the day"), Idempotent(),
		Cron("0 0 2 * * *"), Dialect(DialectSeconds), Zone("Asia/Shanghai"), Input(closeDay{Day: "today"}),
		Retries(2), RetryDelay(10*time.Second), Timeout(time.Minute),
		Blocking(DiscardLater), Routing(Random), Misfire(OnceNowMisfire), Owner("a@b.c"),
		OnSuccess("ok"), OnFailure("sorry"), Priority(-7),
		Job("hourly", Every(time.Hour), Blocking(Parallel), Parallelism(4), Description("a lap"), Input(map[string]string{"day": "now"})))

	m := ex.handlers["close-day"].message()
	require.Equal(t, "closes the day", m.GetDescription())
	require.True(t, m.GetIdempotent())
	require.Contains(t, string(m.GetInputSchema()), `"required":["day"]`)
	require.Contains(t, string(m.GetOutputSchema()), `"orders"`)
	require.Len(t, m.GetJobs(), 2)
	requireMessage(t, &proto.JobDeclaration{
		Name: "close-day", Cron: "0 0 2 * * *", Dialect: "seconds", Zone: "Asia/Shanghai",
		Input: []byte(`{"day":"today"}`), MaxAttempts: 3, RetryDelayMs: 10_000, TimeoutMs: 60_000,
		Blocking: "discard_later", Routing: "random", Misfire: "once_now", OwnerEmail: "a@b.c",
		OnSuccess: "ok", OnFailure: "sorry", Priority: -7,
	}, m.GetJobs()[0])
	requireMessage(t, &proto.JobDeclaration{
		Name: "hourly", EveryMs: 3_600_000, Blocking: "parallel", Parallelism: 4, Description: "a lap", Input: []byte(`{"day":"now"}`), MaxAttempts: 1,
	}, m.GetJobs()[1])
}

func TestHandleDeclaresSchedules(t *testing.T) {
	ex := newTest(t)
	at := time.UnixMilli(1_800_000_000_000)
	Handle(ex, "close-day", closeDayFunc,
		Job("delay", Delay(time.Minute), Jitter(time.Second), Between(at, at.Add(time.Hour))),
		Job("once", At(at)),
		Job("instants", Instants(at, at.Add(time.Hour)), Misfire(AllMisfires), MisfireLimit(time.Hour, 7), MisfireThreshold(time.Second)),
		Job("window", Every(time.Minute), Window("09:00", "17:00"), Calendars("cn"), Days(Workdays)),
		Job("cron", Cron("0 2 * * *"), ClockChanges(SkipGap, OverlapBoth)))
	got := map[string]*proto.JobDeclaration{}
	for _, d := range ex.handlers["close-day"].message().GetJobs() {
		got[d.Name] = d
	}
	for _, want := range []*proto.JobDeclaration{
		{Name: "delay", DelayMs: 60_000, JitterMs: 1000, StartAtMs: at.UnixMilli(), EndAtMs: at.Add(time.Hour).UnixMilli(), MaxAttempts: 1},
		{Name: "once", AtMs: at.UnixMilli(), MaxAttempts: 1},
		{
			Name: "instants", InstantsMs: []int64{at.UnixMilli(), at.Add(time.Hour).UnixMilli()}, MaxAttempts: 1,
			Misfire: "all", MisfireWindowMs: 3_600_000, MisfireMaxRuns: 7, MisfireThresholdMs: 1000,
		},
		{Name: "window", EveryMs: 60_000, WindowFrom: "09:00", WindowTo: "17:00", Calendars: []string{"cn"}, CalendarDays: "workdays", MaxAttempts: 1},
		{Name: "cron", Cron: "0 2 * * *", DstGap: "skip", DstOverlap: "both", MaxAttempts: 1},
	} {
		requireMessage(t, want, got[want.Name])
	}
	for name, opts := range map[string][]JobOption{
		"two kinds": {Delay(time.Minute), At(at)}, "window alone": {Window("09:00", "17:00")}, "days alone": {Every(time.Minute), Days(Workdays)},
		"negative": {Delay(-time.Minute)},
	} {
		require.Panics(t, func() { Handle(newTest(t), "x", closeDayFunc, Job("y", opts...)) }, name)
	}
}

func TestHandleDeclaresRouting(t *testing.T) {
	ex := newTest(t)
	Handle(ex, "close-day", closeDayFunc,
		Job("hash", Routing(ConsistentHash), HashBy("/day"), RequireLabels("zone=eu, !spot"), PreferLabels("cache"), SendRetries(0), SendDelay(time.Second)),
		Job("plain", Routing(LeastLoaded)))
	jobs := ex.handlers["close-day"].message().GetJobs()
	requireMessage(t, &proto.JobDeclaration{
		Name: "hash", MaxAttempts: 1, Routing: "consistent_hash", RoutingKey: "/day", RequireLabels: "zone=eu, !spot", PreferLabels: "cache",
		MaxSends: 1, SendDelayMs: 1000, SendBackoffPermille: 2000,
	}, jobs[0])
	requireMessage(t, &proto.JobDeclaration{Name: "plain", MaxAttempts: 1, Routing: "least_loaded"}, jobs[1])
	for name, opts := range map[string][]JobOption{
		"key alone": {Routing(Random), HashBy("/day")}, "negative": {SendRetries(-1)}, "many": {SendRetries(1000)},
		"negative delay": {SendDelay(-1)}, "fine delay": {SendDelay(time.Microsecond)},
	} {
		require.Panics(t, func() { Handle(newTest(t), "x", closeDayFunc, Job("y", opts...)) }, name)
	}
}

func TestHandleDeclaresRetryLossLabelsAndAlerts(t *testing.T) {
	ex := newTest(t)
	Handle(ex, "close-day", closeDayFunc,
		Retries(3), RetryBackoff(1.5), MaxRetryDelay(time.Minute), DispatchTimeout(time.Hour), OnLost(FailLost),
		JobLabel("team", "books"), JobLabel("env", "prod"), JobLabel("team", "shop"),
		AlertOnFailure(false), AlertNoExecutor(true), AlertEmails("a@b.c"), AlertWebhook("https://example.com/x"),
		Job("plain", RetryBackoff(1)), Job("quiet", AlertNoExecutor(false)))
	m := ex.handlers["close-day"].message()
	yes, no := true, false
	requireMessage(t, &proto.JobDeclaration{
		Name: "close-day", MaxAttempts: 4, RetryBackoffPermille: 1500, MaxRetryDelayMs: 60_000, DispatchTimeoutMs: 3_600_000, OnLost: "fail",
		Labels: map[string]string{"team": "shop", "env": "prod"},
		Alert:  &proto.AlertDeclaration{OnFailure: &no, IncludeNoExecutor: &yes, Emails: []string{"a@b.c"}, WebhookUrl: "https://example.com/x"},
	}, m.GetJobs()[0])
	requireMessage(t, &proto.JobDeclaration{Name: "plain", MaxAttempts: 1}, m.GetJobs()[1])
	requireMessage(t, &proto.JobDeclaration{Name: "quiet", MaxAttempts: 1, Alert: &proto.AlertDeclaration{IncludeNoExecutor: &no}}, m.GetJobs()[2])
	requireMessage(t, &proto.JobDeclaration{
		MaxAttempts: 4, RetryBackoffPermille: 1500, MaxRetryDelayMs: 60_000, DispatchTimeoutMs: 3_600_000, OnLost: "fail",
	}, m.GetCalls())

	many := make([]string, 21)
	for i := range many {
		many[i] = "a@b.c"
	}
	var labels []JobOption
	for i := range 33 {
		labels = append(labels, JobLabel("k"+strconv.Itoa(i), ""))
	}
	for want, opts := range map[string][]JobOption{
		"RetryBackoff(0.5): must be from 1 to 100":                      {RetryBackoff(0.5)},
		"RetryBackoff(NaN): must be from 1 to 100":                      {RetryBackoff(math.NaN())},
		"RetryBackoff(101): must be from 1 to 100":                      {RetryBackoff(101)},
		"MaxRetryDelay(24h0m1s): must be from 0s (the default) to 24h":  {MaxRetryDelay(24*time.Hour + time.Second)},
		"DispatchTimeout(-1s): must be from 0s (the default) to 168h":   {DispatchTimeout(-time.Second)},
		"1.5ms is no whole number of milliseconds":                      {DispatchTimeout(1500 * time.Microsecond)},
		`OnLost("repeat"): must be auto, fail or retry`:                 {OnLost("repeat")},
		`JobLabel("a b"): keys have 1 to 63 bytes without colon`:        {JobLabel("a b", "")},
		`JobLabel("a"): values have at most 128 bytes`:                  {JobLabel("a", "x\xff")},
		"33 times JobLabel: at most 32":                                 labels,
		"AlertEmails: must be from 1 to 20 addresses":                   {AlertEmails()},
		"AlertEmails: must be from 1 to 20 addresses ":                  {AlertEmails(many...)},
		`AlertEmails: "ops" is no mail address such as ops@example.com`: {AlertEmails("ops")},
		"AlertWebhook must be an http or https address":                 {AlertWebhook("")},
		"AlertWebhook must be an http or https address ":                {AlertWebhook("ftp://example.com")},
		"AlertWebhook must not contain a user name or password":         {AlertWebhook("https://a:b@example.com")},
		"AlertWebhook must have at most 2048 bytes":                     {AlertWebhook("https://example.com/" + strings.Repeat("x", 2048))},
	} {
		require.Contains(t, panicOf(func() { Handle(newTest(t), "x", closeDayFunc, Job("y", opts...)) }), strings.TrimSpace(want), want)
	}
}

func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

func TestHandleWithoutJobOptionsDeclaresNone(t *testing.T) {
	ex := newTest(t)
	Handle(ex, "close-day", closeDayFunc, Description("closes the day"))
	require.Empty(t, ex.handlers["close-day"].message().GetJobs())
	Handle(ex, "manual", closeDayFunc, JobName("by-hand"))
	require.Equal(t, "by-hand", ex.handlers["manual"].message().GetJobs()[0].GetName())
}

func TestHandleShapes(t *testing.T) {
	ex := newTest(t)
	var got []string
	HandleIn(ex, "in", func(_ context.Context, in closeDay) error { got = append(got, in.Day); return nil })
	HandleOut(ex, "out", func(context.Context) (report, error) { return report{7}, nil })
	HandleFunc(ex, "none", func(context.Context) error { got = append(got, "none"); return nil })
	Handle(ex, "text", func(_ context.Context, in string) (string, error) { return in + "!", nil })

	call := func(name, input string) string {
		out, err := ex.handlers[name].call(t.Context(), []byte(input))
		require.NoError(t, err)
		return string(out)
	}
	require.Equal(t, "", call("in", `{"day":"mon"}`))
	require.Equal(t, `{"orders":7}`, call("out", ""))
	require.Equal(t, "", call("none", "null"))
	require.Equal(t, `"hi!"`, call("text", `"hi"`))
	require.Equal(t, []string{"mon", "none"}, got)

	_, err := ex.handlers["none"].call(t.Context(), []byte(`{"x":1}`))
	require.EqualError(t, err, `input: unknown field "x"`)
}

// encoding/json does not look into a json.RawMessage. The output and the declared input
// are UTF-8 all the same.
func TestRawValuesAreUTF8(t *testing.T) {
	ex := newTest(t)
	gbk := json.RawMessage("{\"city\":\"\xb0\xd9\"}")
	Handle(ex, "raw", func(context.Context, json.RawMessage) (json.RawMessage, error) { return gbk, nil }, Every(time.Minute), Input(gbk))
	out, err := ex.handlers["raw"].call(t.Context(), gbk)
	require.NoError(t, err)
	const clean = "{\"city\":\"\uFFFD\"}"
	require.Equal(t, []string{clean, clean}, []string{string(out), string(ex.handlers["raw"].message().GetJobs()[0].GetInput())})
}

func TestOutputThatIsNoJSON(t *testing.T) {
	ex := newTest(t)
	Handle(ex, "nan", func(context.Context, struct{}) (float64, error) {
		var zero float64
		return zero / zero, nil
	})
	_, err := ex.handlers["nan"].call(t.Context(), nil)
	require.ErrorContains(t, err, "encode output: json: unsupported value: NaN")
	kind, _ := classify(err)
	require.Equal(t, "permanent", kind)
}

func TestHandlePanicsOnMistakes(t *testing.T) {
	fn := closeDayFunc
	for want, register := range map[string]func(ex *Executor){
		`carillon: handler name "": must not be empty`:                                           func(ex *Executor) { Handle(ex, "", fn) },
		`carillon: handler "a" is registered twice`:                                              func(ex *Executor) { Handle(ex, "a", fn); Handle(ex, "a", fn) },
		`carillon: handler "a": Cron and Every exclude each other`:                               func(ex *Executor) { Handle(ex, "a", fn, Cron("* * * * *"), Every(1)) },
		`carillon: handler "a": Retries must not be negative`:                                    func(ex *Executor) { Handle(ex, "a", fn, Retries(-1)) },
		`carillon: handler "a": 1.5ms is no whole number of milliseconds`:                        func(ex *Executor) { Handle(ex, "a", fn, Every(1500*time.Microsecond)) },
		`carillon: handler "a": job name "b c": must not contain spaces or control characters`:   func(ex *Executor) { Handle(ex, "a", fn, Job("b c")) },
		`carillon: handler "a": Input does not fit the handler: required field "day" is missing`: func(ex *Executor) { Handle(ex, "a", fn, Input(struct{}{})) },
		`carillon: handler "b": job "a" is declared by handler "a" already`:                      func(ex *Executor) { Handle(ex, "a", fn, Zone("UTC")); Handle(ex, "b", fn, Job("a")) },
		`carillon: handler "c": input chan int: type chan int has no form in JSON`:               func(ex *Executor) { HandleIn(ex, "c", func(context.Context, chan int) error { return nil }) },
	} {
		require.PanicsWithValue(t, want, func() { register(newTest(t)) })
	}
}

func TestTypedErrors(t *testing.T) {
	base := errors.New("db is down")
	require.NoError(t, Permanent(nil))
	require.NoError(t, RetryAfter(nil, time.Second))
	require.ErrorIs(t, Permanent(base), base)
	require.EqualError(t, RetryAfter(base, time.Second), "db is down")

	for _, c := range []struct {
		err   error
		kind  string
		after time.Duration
	}{
		{base, "retryable", 0},
		{Permanent(base), "permanent", 0},
		{errors.Join(errors.New("x"), Permanent(base)), "permanent", 0},
		{RetryAfter(base, time.Minute), "retryable", time.Minute},
		{RetryAfter(base, -time.Minute), "retryable", 0},
		{Permanent(RetryAfter(base, time.Minute)), "permanent", 0},
	} {
		kind, after := classify(c.err)
		require.Equal(t, c.kind, kind)
		require.Equal(t, c.after, after)
	}
}

func TestTaskFromOutsideOfAHandler(t *testing.T) {
	require.Zero(t, TaskFrom(t.Context()))
	task := taskOf(&proto.Offer{ExecutionId: 42, FireAtMs: 1_000, Attempt: 2, ShardTotal: 3})
	require.Equal(t, "42", task.Key())
	require.Equal(t, time.Unix(1, 0).UTC(), task.FireTime)
}

func requireMessage(t *testing.T, want, got gproto.Message) {
	t.Helper()
	require.True(t, gproto.Equal(want, got), "want %v\ngot  %v", want, got)
}
