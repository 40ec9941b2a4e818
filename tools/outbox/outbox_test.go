package outbox

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
)

func TestWhatIsCommittedIsSet(t *testing.T) {
	onEach(t, func(w *world) {
		ctx := w.Context()
		before := time.Now().Add(30 * time.Minute)
		var written *timers.Timer
		w.in(func(tx *sql.Tx) {
			var err error
			written, err = w.orders.After(ctx, 30*time.Minute, CancelOrder{77}, timers.Key("order-77 'ü\\"), timers.Tx(tx, w.dialect), timers.Labels("shop:5"))
			require.NoError(w, err)
		})
		require.Equal(w, timers.Written, written.Outcome)
		require.WithinRange(w, written.FireAt, before, time.Now().Add(30*time.Minute+time.Millisecond))
		tx, err := w.db.BeginTx(ctx, nil)
		require.NoError(w, err)
		_, err = timers.NewPlain(w.client, "shop", "sweep").After(ctx, time.Hour, timers.Tx(tx, w.dialect))
		require.NoError(w, err)
		require.NoError(w, tx.Rollback())

		require.Zero(w, w.admin.requests, "the transaction waits for nobody")
		sent, err := w.box.Drain(ctx)
		require.NoError(w, err)
		require.Equal(w, 1, sent)
		require.Zero(w, w.rows("1 = 1"))
		require.Len(w, w.admin.timers, 1)
		name, _ := w.admin.timers["order-77 'ü\\"].request["requestId"].(string)
		require.Regexp(w, "^outbox-[0-9a-f]{32}$", name)
		require.Equal(w, map[string]any{
			"requestId": name, "executor": "shop", "handler": "cancel-order", "key": "order-77 'ü\\", "at": written.FireAt.Format("2006-01-02T15:04:05.000Z07:00"),
			"input": map[string]any{"order": 77.0}, "labels": []any{"shop:5"},
		}, w.admin.timers["order-77 'ü\\"].request)
	})
}

// The schema as it is printed is what Create makes, and making it again does nothing.
func TestTheSchemaIsPrintable(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 1)
		require.NoError(w, w.box.Create(w.Context()))
		require.Equal(w, 1, w.rows("due_at = 0 AND executor = 'shop' AND handler = 'cancel-order' AND timer_key = 'order-0000' AND error IS NULL"))
		_, err := w.db.ExecContext(w.Context(), "DROP TABLE carillon_timers")
		require.NoError(w, err)
		for statement := range strings.SplitSeq(strings.TrimSuffix(timers.Schema(w.dialect), ";\n"), ";\n") {
			_, err := w.db.ExecContext(w.Context(), statement)
			require.NoError(w, err)
		}
		w.set(0, 1)
		require.Equal(w, 1, w.rows("1 = 1"))
	})
}

// Many drain while others write: nothing is lost, nothing waits, and nothing is sent
// twice.
func TestManyDrainAtOnce(t *testing.T) {
	onEach(t, func(w *world) {
		const writers, batches, size = 3, 8, 60
		ctx, cancel := context.WithCancelCause(w.Context())
		stop := errors.New("enough")
		var drainers, writing sync.WaitGroup
		for range 3 {
			box := w.newOutbox()
			drainers.Go(func() {
				for ctx.Err() == nil {
					if _, err := box.Drain(ctx); err != nil && ctx.Err() == nil && w.dialect != timers.SQLite {
						w.Error(err)
					}
				}
			})
		}
		for n := range writers {
			writing.Go(func() {
				for b := range batches {
					from := (n*batches + b) * size
					w.set(from, from+size)
				}
			})
		}
		writing.Wait()
		require.Eventually(w, func() bool { return w.rows("1 = 1") == 0 }, time.Minute, 10*time.Millisecond)
		cancel(stop)
		drainers.Wait()
		set, asked := w.admin.has()
		require.Equal(w, writers*batches*size, set)
		require.Equal(w, set, asked)
	})
}

// While a batch is on its way the application writes and commits, and others
// drain what it writes.
func TestNobodyWaitsForABatchOnItsWay(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 10)
		arrived, release := w.holdFirst()
		first := make(chan error, 1)
		go func() { _, err := w.box.Drain(w.Context()); first <- err }()
		<-arrived
		w.set(10, 20)
		_, err := w.newOutbox().Drain(w.Context())
		require.NoError(w, err)
		set, _ := w.admin.has()
		require.Equal(w, 20, set)
		release()
		require.NoError(w, <-first)
		require.Zero(w, w.rows("1 = 1"))
	})
}

const (
	envDoomed  = "CARILLON_OUTBOX_DOOMED" // dialect, driver, DSN and URL, by lines
	doomedWait = time.Minute
)

// drainAndDie is the process that is killed while it drains.
func drainAndDie() {
	lines := strings.Split(os.Getenv(envDoomed), "\n")
	db, err := sql.Open(lines[1], lines[2])
	if err != nil {
		panic(err)
	}
	client, err := proxy.New(proxy.Config{URL: lines[3], Key: "ck_1"})
	if err != nil {
		panic(err)
	}
	box, err := timers.NewOutbox(timers.OutboxConfig{Client: client, DB: db, Dialect: timers.Dialect(lines[0])})
	if err != nil {
		panic(err)
	}
	_, err = box.Drain(context.Background())
	panic(err) // it is to be dead by now
}

// The admin has taken the batch, and the process dies before it can delete it:
// another one sends it again, and it is one timer.
func TestAKillBetweenSendAndDelete(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 30)
		doomed := exec.Command(os.Args[0])
		url := serve(w.T, w.admin)
		doomed.Env = append(os.Environ(), envDoomed+"="+strings.Join([]string{string(w.dialect), w.driver, w.dsn, url}, "\n"))
		started := make(chan struct{})
		w.admin.mu.Lock() // the race detector does not see what another process asks
		w.admin.after = sync.OnceFunc(func() { <-started; _ = doomed.Process.Kill() })
		w.admin.mu.Unlock()
		var out bytes.Buffer
		doomed.Stdout, doomed.Stderr = &out, &out
		require.NoError(w, doomed.Start())
		close(started)
		var exit *exec.ExitError
		require.ErrorAs(w, doomed.Wait(), &exit)
		require.False(w, exit.Exited(), "it was not killed: %s", out.String())
		require.Equal(w, 30, w.rows("1 = 1"))
		set, _ := w.admin.has()
		require.Equal(w, 30, set)

		if w.dialect == timers.SQLite { // what is marked would be left alone for a while
			require.Equal(w, 30, w.rows("due_at < 0"))
			_, err := w.box.Drain(w.Context())
			require.NoError(w, err)
			require.Equal(w, 30, w.rows("due_at < 0"))
			_, err = w.db.ExecContext(w.Context(), "UPDATE carillon_timers SET due_at = -1") // it is over
			require.NoError(w, err)
		}
		require.Eventually(w, func() bool { // the server has to notice that its client is gone
			_, err := w.box.Drain(w.Context())
			return err == nil && w.rows("1 = 1") == 0
		}, doomedWait, 10*time.Millisecond)
		set, asked := w.admin.has()
		require.Equal(w, 30, set)
		require.Equal(w, 60, asked)
	})
}

// What the admin does not take for what it is, is set aside with the error; what
// may change is tried again later. Neither blocks what stands behind it.
func TestPoisonBlocksNobody(t *testing.T) {
	onEach(t, func(w *world) {
		ctx := w.Context()
		w.admin.judge = func(key, handler string) string {
			switch {
			case key == "order-0003":
				return "unfit_input"
			case handler == "later":
				return "unknown_handler"
			}
			return ""
		}
		w.admin.whole = func(text string) (int, string) {
			switch {
			case strings.Contains(text, "order-0600"):
				return http.StatusUnprocessableEntity, "validation_failed"
			case strings.Contains(text, `"forbidden"`):
				return http.StatusForbidden, "permission_denied"
			}
			return 0, ""
		}
		w.in(func(tx *sql.Tx) {
			for _, handler := range []string{"later", "forbidden"} {
				_, err := timers.NewPlain(w.client, "shop", handler).After(ctx, time.Hour, timers.Key(handler), timers.Tx(tx, w.dialect))
				require.NoError(w, err)
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO carillon_timers (executor, handler, timer_key, action, request, created_at, due_at, attempts) VALUES ('shop', 'cancel-order', 'broken', 'set', '{', 0, 0, 0)")
			require.NoError(w, err)
		})
		w.set(0, 1200)
		sent, err := w.box.Drain(ctx)
		require.NoError(w, err)
		require.Equal(w, 1198, sent)
		require.Equal(w, 5, w.rows("1 = 1"))
		require.Equal(w, 2, w.rows("due_at > 0 AND attempts > 0 AND error IS NOT NULL"))

		aside, err := w.box.SetAside(ctx, 10)
		require.NoError(w, err)
		var keys []string
		for _, a := range aside {
			keys = append(keys, a.Key)
			require.NotEmpty(w, a.Err)
			require.Equal(w, "cancel-order", a.Handler)
		}
		require.Equal(w, []string{"broken", "order-0003", "order-0600"}, keys)
		require.Contains(w, aside[1].Err, "unfit_input")
		require.JSONEq(w, `{"order":3}`, inputOf(w.T, aside[1].Request))

		w.admin.mu.Lock()
		w.admin.judge, w.admin.whole = nil, nil
		w.admin.mu.Unlock()
		again, err := w.box.Retry(ctx)
		require.NoError(w, err)
		require.EqualValues(w, 5, again)
		sent, err = w.box.Drain(ctx)
		require.NoError(w, err)
		require.Equal(w, 4, sent, "broken is set aside again")
		require.Equal(w, 1, w.rows("1 = 1"))
	})
}

// A timer of which the admin does not know whether it is set is asked for again
// later, and keeps nobody out.
func TestAnAdminThatDoesNotKnow(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 600)
		w.admin.judge = func(key, _ string) string {
			if key == "order-0007" {
				return "unavailable"
			}
			return ""
		}
		sent, err := w.box.Drain(w.Context())
		require.NoError(w, err)
		require.Equal(w, 599, sent)
		// Where draining took longer than its pause, it was asked for once more.
		require.Equal(w, 1, w.rows("timer_key = 'order-0007' AND due_at > 0 AND attempts >= 1"))
		require.GreaterOrEqual(w, w.admin.requests, 2)
	})
}

// The answer for the second of two handlers makes no sense: the first one's timers
// are done, and the others stay as they were.
func TestHalfOfABatchIsAnswered(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 2)
		w.in(func(tx *sql.Tx) {
			_, err := timers.NewPlain(w.client, "shop", "sweep").After(w.Context(), time.Hour, timers.Tx(tx, w.dialect))
			require.NoError(w, err)
		})
		w.admin.whole = func(text string) (int, string) {
			if strings.Contains(text, "sweep") {
				return http.StatusOK, "nonsense"
			}
			return 0, ""
		}
		_, err := w.box.Drain(w.Context())
		var gone *timers.UnconfirmedError
		require.ErrorAs(w, err, &gone)
		require.Equal(w, 1, w.rows("handler = 'sweep' AND due_at = 0 AND attempts = 0 AND error IS NULL"))
		require.Equal(w, 1, w.rows("1 = 1"))
		w.admin.whole = nil
		_, err = w.box.Drain(w.Context())
		require.NoError(w, err)
		require.Zero(w, w.rows("1 = 1"))
		set, asked := w.admin.has()
		require.Equal(w, 3, set)
		require.Equal(w, 3, asked)
	})
}

// An outbox of which nothing is taken says so, and goes on at once when somebody has mended
// what it was.
func TestAnOutboxThatIsRefusedSaysSo(t *testing.T) {
	onEach(t, func(w *world) {
		w.admin.whole = func(string) (int, string) { return http.StatusUnauthorized, "unauthenticated" }
		w.set(0, 3)
		for range 2 {
			_, err := w.box.Drain(w.Context())
			require.NoError(w, err)
			_, err = w.db.ExecContext(w.Context(), "UPDATE carillon_timers SET due_at = 0")
			require.NoError(w, err)
		}
		_, err := w.box.Drain(w.Context())
		require.NoError(w, err)
		require.Equal(w, 1, strings.Count(w.log.String(), "are refused, and tried again"), w.log.String())
		require.Contains(w, w.log.String(), "rows=3")
		require.Contains(w, w.log.String(), "unauthenticated")
		require.Equal(w, 3, w.rows("due_at > 0"))
		w.admin.whole = nil
		again, err := w.box.Retry(w.Context())
		require.NoError(w, err)
		require.EqualValues(w, 3, again)
		sent, err := w.box.Drain(w.Context())
		require.NoError(w, err)
		require.Equal(w, 3, sent)
	})
}

// The application closes its database while a batch is on its way.
func TestADatabaseThatIsClosedMeanwhile(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 3)
		db, err := sql.Open(w.driver, w.dsn)
		require.NoError(w, err)
		box, err := timers.NewOutbox(timers.OutboxConfig{Client: w.client, DB: db, Dialect: w.dialect})
		require.NoError(w, err)
		w.admin.after = sync.OnceFunc(func() { assert.NoError(w, db.Close()) })
		_, err = box.Drain(w.Context())
		if w.dialect != timers.SQLite { // the transaction goes on
			require.NoError(w, err)
			return
		}
		require.ErrorContains(w, err, "carillon_timers")
		require.Equal(w, 3, w.rows("due_at < 0"))
	})
}

// A row that somebody has damaged ends no process, and keeps no other row.
func TestADamagedRowIsSent(t *testing.T) {
	onEach(t, func(w *world) {
		w.admin.judge = func(key, _ string) string { return map[string]string{"order-0000": "quota_exceeded"}[key] }
		w.set(0, 2)
		damaged := "-5"
		if w.dialect == timers.SQLite {
			damaged = "'many'"
		}
		for _, attempts := range []string{"-5", damaged} {
			_, err := w.db.ExecContext(w.Context(), "UPDATE carillon_timers SET due_at = 0, attempts = "+attempts)
			require.NoError(w, err)
			_, err = w.box.Drain(w.Context())
			require.NoError(w, err)
			require.Equal(w, 1, w.rows("due_at > 0"), "the other one was sent")
		}
	})
}

// An admin that does not answer leaves all as it was.
func TestAnAdminThatIsAway(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 3)
		ctx, cancel := context.WithCancelCause(w.Context())
		why := errors.New("enough")
		w.admin.whole = func(string) (int, string) { cancel(why); return http.StatusServiceUnavailable, "unavailable" }
		_, err := w.box.Drain(ctx)
		require.ErrorIs(w, err, why)
		require.Equal(w, 3, w.rows("due_at = 0 AND attempts = 0 AND error IS NULL"))
	})
}

// Run sends at once when it is told to, and ends with its context.
func TestRunSendsWhenNudged(t *testing.T) {
	onEach(t, func(w *world) {
		ctx, cancel := context.WithCancelCause(w.Context())
		why := errors.New("enough")
		ended := make(chan error, 1)
		taken := make(chan struct{}, 10)
		w.admin.after = func() { taken <- struct{}{} }
		w.set(0, 1)
		go func() { ended <- w.box.Run(ctx) }()
		<-taken
		w.set(1, 2)
		w.box.Nudge()
		<-taken
		require.Eventually(w, func() bool { return w.rows("1 = 1") == 0 }, time.Minute, 10*time.Millisecond)
		cancel(why)
		require.ErrorIs(w, <-ended, why)
	})
}

func TestWhatATransactionCannotHave(t *testing.T) {
	onEach(t, func(w *world) {
		ctx := w.Context()
		w.in(func(tx *sql.Tx) {
			for name, opts := range map[string][]timers.Option{
				"policy is Keep":     {timers.Tx(tx, w.dialect), timers.OnExisting(timers.Replace)},
				"policy is Keep: a":  {timers.Tx(tx, w.dialect), timers.OnExisting(timers.Reject)},
				"no dialect":         {timers.Tx(tx, "oracle")},
				"longer than 160":    {timers.Tx(tx, w.dialect), timers.Key(strings.Repeat("ü", 161))},
				"no text":            {timers.Tx(tx, w.dialect), timers.Key("\xff")},
				"control characters": {timers.Tx(tx, w.dialect), timers.Key("a\nb")},
				"begins or ends":     {timers.Tx(tx, w.dialect), timers.Key("a ")},
			} {
				_, err := w.orders.After(ctx, time.Hour, CancelOrder{1}, opts...)
				require.ErrorContains(w, err, name)
			}
			_, err := w.orders.At(ctx, time.Time{}, CancelOrder{1}, timers.Tx(tx, w.dialect))
			require.ErrorContains(w, err, "zero time")
			_, err = w.orders.Reschedule(ctx, "a", timers.At(time.Time{}), timers.Tx(tx, w.dialect))
			require.ErrorContains(w, err, "zero time")
			_, err = w.orders.After(ctx, time.Hour, CancelOrder{1}, timers.Tx(tx, w.dialect), timers.Key(strings.Repeat("ü", 160)))
			require.NoError(w, err)
		})
		require.Equal(w, 1, w.rows("1 = 1"))
		_, err := timers.NewOutbox(timers.OutboxConfig{Client: w.client, DB: w.db, Dialect: "oracle"})
		require.Error(w, err)
	})
}

// A process sent a timer and died before it deleted the row. The timer was cancelled
// meanwhile, and stays cancelled. The same key in a later row is another timer.
func TestACancelledTimerIsNotSetOnceMore(t *testing.T) {
	onEach(t, func(w *world) {
		exec := func(statement string) {
			_, err := w.db.ExecContext(w.Context(), statement)
			require.NoError(w, err)
		}
		w.set(0, 1)
		exec("CREATE TABLE died AS SELECT * FROM carillon_timers")
		require.Equal(w, []string{"set order-0000"}, w.drain())
		_, err := w.orders.CancelMany(w.Context(), []string{"order-0000"})
		require.NoError(w, err)
		exec("INSERT INTO carillon_timers SELECT * FROM died")
		require.Equal(w, []string{"cancel order-0000", "set order-0000"}, w.drain())
		require.Empty(w, w.admin.timers)
		require.Zero(w, w.rows("1 = 1"))
		require.NotContains(w, w.log.String(), "was not set")
		w.set(0, 1)
		w.drain()
		require.Len(w, w.admin.timers, 1)
	})
}
