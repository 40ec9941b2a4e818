package executor

import (
	"context"
	"errors"
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
