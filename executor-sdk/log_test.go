package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

func lines(n int) func(fakeadmin.Seen) bool {
	return func(s fakeadmin.Seen) bool { return len(s.Lines) >= n }
}

func TestLogsOfARunAreCaptured(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	var own bytes.Buffer
	both := slog.New(executor.LogHandler(slog.NewTextHandler(&own, nil)))
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(ctx context.Context) error {
			executor.Logger(ctx).Info("by the run's logger", "order", 7)
			executor.Logger(ctx).With("a", 1).WithGroup("g").Warn("grouped", "b", 2)
			executor.Logger(ctx).Debug("below the level")
			both.InfoContext(ctx, "by the application's logger", "k", "v")
			both.Info("without the context")
			return nil
		})
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "h")))
	seen := saw(t, admin, lines(3))
	require.EqualValues(t, 3, saw(t, admin, results(1)).Results[0].GetLogLines())
	got := []string{}
	for i, l := range seen.Lines {
		require.EqualValues(t, 1, l.Execution)
		require.EqualValues(t, i+1, l.Number)
		require.WithinDuration(t, time.Now(), time.UnixMilli(l.GetAtMs()), time.Minute)
		got = append(got, strings.Join([]string{slog.Level(l.GetLevel()).String(), l.GetMessage(), string(l.GetAttrs())}, " "))
	}
	require.Equal(t, []string{
		`INFO by the run's logger {"order":7}`,
		`WARN grouped {"a":1,"g":{"b":2}}`,
		`INFO by the application's logger {"k":"v"}`,
	}, got)
	require.NoError(t, a.stop())
	require.Contains(t, own.String(), "by the application's logger")
	require.Contains(t, own.String(), "without the context")
	require.NotContains(t, own.String(), "by the run's logger")
}

func TestLogLinesAreSentAgainUntilStored(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	admin.HoldLogAcks.Store(true)
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(ctx context.Context) error {
			executor.Logger(ctx).Info("once")
			return nil
		})
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "h")))
	saw(t, admin, lines(1))
	admin.HoldLogAcks.Store(false)
	admin.Sessions()[0].Cut()
	session(t, admin, 2)
	admin.Close() // takes the log connection with it
	require.NoError(t, func() error { admin.Listen = admin.Address(); return admin.Start() }())
	seen := saw(t, admin, lines(2))
	require.Equal(t, seen.Lines[0].Number, seen.Lines[1].Number)
	require.NoError(t, a.stop())
	require.NotContains(t, a.log.String(), "log lines are left")
}

type spanKey struct{}

// The trace id comes from the span of the context, then from the one that the
// logger was made in, then from the trigger.
func TestLogLinesCarryTheTrace(t *testing.T) {
	span := func(ctx context.Context, id string) context.Context { return context.WithValue(ctx, spanKey{}, id) }
	admin := startAdmin(t, &fakeadmin.Admin{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(ctx context.Context) error {
			executor.Logger(ctx).Info("trigger")
			inner := executor.Logger(span(ctx, "b")).With("k", "v")
			inner.Info("logger")
			inner.InfoContext(span(ctx, "c"), "context")
			slog.New(executor.LogHandler(nil)).InfoContext(span(ctx, "d"), "application")
			return nil
		})
	}, func(c *executor.Config) {
		c.TraceID = func(ctx context.Context) string { id, _ := ctx.Value(spanKey{}).(string); return id }
	})
	const trigger = "4bf92f3577b34da6a3ce929d0e0e4736"
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "h", func(o *proto.Offer) { o.Traceparent = "00-" + trigger + "-00f067aa0ba902b7-01" })))
	got := []string{}
	for _, l := range saw(t, admin, lines(4)).Lines {
		got = append(got, l.GetMessage()+" "+l.GetTraceId())
	}
	require.Equal(t, []string{"trigger " + trigger, "logger b", "context c", "application d"}, got)
	require.NoError(t, a.stop())
}

// A job's level comes before its handler's, and that before the executor's.
// A handler that bounds its own output says how much it has left out.
func TestLinesThatAHandlerLeavesOut(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(ctx context.Context) error {
			log := executor.Logger(ctx)
			log.Info("head")
			log.With("k", "v").Handler().(interface{ LeaveOut(int64, string) }).LeaveOut(40, "too long")
			log.Info("tail")
			return nil
		})
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "h")))
	got := saw(t, admin, lines(3)).Lines
	require.EqualValues(t, []int64{1, 42, 43}, []int64{got[0].Number, got[1].Number, got[2].Number})
	require.Equal(t, "… 40 lines dropped: too long", got[1].GetMessage())
	require.EqualValues(t, 43, saw(t, admin, results(1)).Results[0].GetLogLines())
	require.NoError(t, a.stop())
}

func TestLogLevels(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	say := func(ctx context.Context) error {
		executor.Logger(ctx).Debug("debug")
		executor.Logger(ctx).Info("info")
		executor.Logger(ctx).Error("error")
		return nil
	}
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "chatty", say, executor.LogLevel(slog.LevelDebug))
		executor.HandleFunc(ex, "quiet", say, executor.LogLevel(slog.LevelError))
		executor.HandleFunc(ex, "plain", say)
	})
	job := func(level string) func(*proto.Offer) { return func(o *proto.Offer) { o.LogLevel = level } }
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "chatty"), offer(2, "quiet"), offer(3, "plain")))
	saw(t, admin, results(3))
	require.NoError(t, session(t, admin, 1).Offer(offer(4, "quiet", job("INFO")), offer(5, "chatty", job("nonsense"))))
	got := map[int64][]string{}
	for _, l := range saw(t, admin, lines(11)).Lines {
		got[l.Execution] = append(got[l.Execution], l.GetMessage())
	}
	require.Equal(t, map[int64][]string{
		1: {"debug", "info", "error"}, 2: {"error"}, 3: {"info", "error"}, 4: {"info", "error"}, 5: {"debug", "info", "error"},
	}, got)
	require.NoError(t, a.stop())
}

// A run may write tens of thousands of short lines in one go while no admin node
// stores any: the buffer is for that, and nobody else needs it.
func TestABurstOfShortLinesIsKept(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	admin.HoldLogAcks.Store(true)
	text := strings.Repeat("x", 60)
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "burst", func(ctx context.Context) error {
			for range 50_000 {
				executor.Logger(ctx).Info(text)
			}
			return nil
		})
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "burst")))
	seen := saw(t, admin, results(1))
	require.EqualValues(t, 50_000, resultOf(seen, 1).GetLogLines())
	stats := a.Stats()
	require.EqualValues(t, 50_000, stats.LogLines)
	require.Zero(t, stats.LogLinesDropped)
	admin.HoldLogAcks.Store(false)
	admin.Sessions()[0].Cut()
	require.NoError(t, a.stop())
	stored := map[int64]bool{} // some came twice
	for _, l := range admin.Seen().Lines {
		stored[l.Number] = true
	}
	require.Equal(t, 50_000, len(stored))
}

// A handler that logs without end loses lines, not the heartbeats, and the
// log says how many.
func TestLogFloodHarmsNobody(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{Heartbeat: 100 * time.Millisecond})
	admin.HoldLogAcks.Store(true)
	text := strings.Repeat("x", 1000)
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "flood", func(ctx context.Context) error {
			log := executor.Logger(ctx)
			for ctx.Err() == nil {
				log.Info(text)
			}
			return nil
		})
		executor.HandleFunc(ex, "quick", func(ctx context.Context) error {
			executor.Logger(ctx).Info("quick was here")
			return nil
		})
	}, func(c *executor.Config) { c.LogBuffer = 1 << 20 })
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "flood", func(o *proto.Offer) { o.TimeoutMs = 1500 })))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 1 })
	before := len(admin.Seen().Heartbeats)
	require.NoError(t, s.Offer(offer(2, "quick")))
	seen := saw(t, admin, results(2))
	require.Equal(t, "SUCCEEDED", brief(resultOf(seen, 1)))
	require.Greater(t, len(seen.Heartbeats), before+5)
	require.Equal(t, 1, seen.Sessions, "the session stood all the time")

	admin.HoldLogAcks.Store(false)
	admin.Sessions()[0].Cut()
	require.NoError(t, a.stop())
	dropped := int64(0)
	quick, end := false, false
	for _, l := range admin.Seen().Lines {
		if l.Execution == 1 && len(l.GetAttrs()) > 0 {
			var attrs struct{ Dropped int64 }
			require.NoError(t, json.Unmarshal(l.GetAttrs(), &attrs))
			dropped += attrs.Dropped
		}
		end = end || l.Execution == 1 && l.Number == resultOf(seen, 1).GetLogLines() && l.GetMessage() == text
		quick = quick || l.Execution == 2
	}
	require.Greater(t, dropped, int64(1000))
	require.True(t, quick)
	require.True(t, end, "the last line of the flood")
}

type panicky struct{}

func (panicky) MarshalJSON() ([]byte, error) { panic("no") }

type secretive struct{}

func (secretive) LogValue() slog.Value { return slog.GroupValue(slog.String("shown", "yes")) }

func TestAttributesBecomeJSON(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(ctx context.Context) error {
			executor.Logger(ctx).WithGroup("empty").Info("none")
			executor.Logger(ctx).WithGroup("").With().Info("all",
				"s", "a\"b\xff", "i", -1, "u", uint64(1<<63), "f", 1.5, "nan", math.NaN(), "b", true,
				"d", 90*time.Second, "t", time.Unix(0, 0).UTC(), "err", errors.New("broken"),
				"any", map[string]int{"x": 1}, "chan", make(chan int) != nil, "bad", panicky{},
				"log", secretive{}, slog.Group("g", slog.Int("n", 1), slog.Group("none")), slog.Group("", slog.Int("inlined", 2)),
				slog.Attr{}, "func", func() {})
			return nil
		})
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "h")))
	seen := saw(t, admin, lines(2))
	require.Empty(t, seen.Lines[0].GetAttrs())
	var got map[string]any
	require.NoError(t, json.Unmarshal(seen.Lines[1].GetAttrs(), &got), string(seen.Lines[1].GetAttrs()))
	require.Regexp(t, "^0x", got["func"])
	delete(got, "func")
	require.Equal(t, map[string]any{
		"s": "a\"b\uFFFD", "i": -1.0, "u": 9.223372036854775808e18, "f": 1.5, "nan": "NaN", "b": true,
		"d": "1m30s", "t": "1970-01-01T00:00:00Z", "err": "broken", "any": map[string]any{"x": 1.0}, "chan": true,
		"bad": "!PANIC: no", "log": map[string]any{"shown": "yes"}, "g": map[string]any{"n": 1.0}, "inlined": 2.0,
	}, got)
	require.NoError(t, a.stop())
}

func TestSecretsAreRedactedByTheirName(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(ctx context.Context) error {
			executor.Logger(ctx).With("API-Key", "s1").Info("m", "password", "s2", "accessToken", "s3", "X-Api-Key", []byte("s4"),
				slog.Group("db", slog.String("DSN", "s5"), slog.String("host", "db1")), "tokens_used", 17, "secretary", "Ms Berg")
			return nil
		})
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "h")))
	const hidden = `"[redacted]"`
	require.JSONEq(t, `{"API-Key":`+hidden+`,"password":`+hidden+`,"accessToken":`+hidden+`,"X-Api-Key":`+hidden+
		`,"db":{"DSN":`+hidden+`,"host":"db1"},"tokens_used":17,"secretary":"Ms Berg"}`, string(saw(t, admin, lines(1)).Lines[0].GetAttrs()))
	require.NoError(t, a.stop())
}

func TestLoggerOutsideOfARun(t *testing.T) {
	require.Same(t, slog.Default(), executor.Logger(t.Context()))
	h := executor.LogHandler(nil)
	require.False(t, h.Enabled(t.Context(), slog.LevelError))
	require.NoError(t, h.Handle(t.Context(), slog.Record{}))
}
