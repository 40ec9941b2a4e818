package outbox

import (
	"database/sql"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/timers"
)

// cancel writes that the timer of the key is cancelled, move that it is moved.
func (w *world) cancel(key string) {
	w.Helper()
	w.in(func(tx *sql.Tx) {
		timer, err := w.orders.Cancel(w.Context(), key, timers.Tx(tx, w.dialect))
		require.NoError(w, err)
		require.Equal(w, timers.Written, timer.Outcome)
	})
}

func (w *world) move(key string, when timers.When) *timers.Timer {
	w.Helper()
	var timer *timers.Timer
	w.in(func(tx *sql.Tx) {
		var err error
		timer, err = w.orders.Reschedule(w.Context(), key, when, timers.Tx(tx, w.dialect))
		require.NoError(w, err)
	})
	return timer
}

// drain sends what is due, and what waits, and returns what the admin was asked for.
func (w *world) drain() []string {
	w.Helper()
	_, err := w.db.ExecContext(w.Context(), "UPDATE carillon_timers SET due_at = 0 WHERE due_at > 0")
	require.NoError(w, err)
	_, err = w.box.Drain(w.Context())
	require.NoError(w, err)
	return w.admin.news()
}

// news is what the admin was asked for since it was last asked.
func (a *admin) news() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := a.told
	a.told = nil
	return told
}

// The order is paid in the transaction that ends its timer.
func TestWhatIsCommittedIsCancelledAndMoved(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 3)
		require.Len(w, w.drain(), 3)
		tx, err := w.db.BeginTx(w.Context(), nil)
		require.NoError(w, err)
		_, err = w.orders.Cancel(w.Context(), "order-0001", timers.Tx(tx, w.dialect))
		require.NoError(w, err)
		require.NoError(w, tx.Rollback())
		w.cancel("order-0000")
		moved := w.move("order-0002", timers.After(3*time.Hour))
		require.WithinDuration(w, time.Now().Add(3*time.Hour), moved.FireAt, time.Minute)
		require.Empty(w, w.admin.news(), "the transaction waits for nobody")
		require.ElementsMatch(w, []string{"cancel order-0000", "reschedule order-0002"}, w.drain())
		require.Zero(w, w.rows("1 = 1"))
		require.Len(w, w.admin.timers, 2)
		require.Equal(w, moved.FireAt.Format("2006-01-02T15:04:05.000Z07:00"), w.admin.timers["order-0002"].request["at"])
	})
}

// Rows of a key are sent in their order, and what is cancelled before it was sent is
// not sent.
func TestRowsOfAKeyKeepTheirOrder(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 4)
		w.move("order-0000", timers.After(2*time.Hour))
		w.cancel("order-0001")
		w.move("order-0002", timers.After(2*time.Hour))
		w.cancel("order-0002")
		w.set(2, 3)
		w.move("order-0002", timers.After(4*time.Hour))
		told := w.drain()
		of := func(key string) (out []string) {
			for _, line := range told {
				if action, found := strings.CutSuffix(line, " "+key); found {
					out = append(out, action)
				}
			}
			return out
		}
		require.Equal(w, []string{"set"}, of("order-0000"))
		require.Equal(w, []string{"cancel"}, of("order-0001"))
		require.Equal(w, []string{"cancel", "set"}, of("order-0002"))
		w.fires("order-0000", 2*time.Hour)
		w.fires("order-0002", 4*time.Hour)
		require.Equal(w, []string{"set"}, of("order-0003"))
		require.Zero(w, w.rows("1 = 1"))
		require.Len(w, w.admin.timers, 3)
	})
}

// fires is when a timer fires, from now on.
func (w *world) fires(key string, in time.Duration) {
	w.Helper()
	at, err := time.Parse(time.RFC3339, w.admin.timers[key].request["at"].(string))
	require.NoError(w, err)
	require.WithinDuration(w, time.Now().Add(in), at, time.Minute)
}

// The first instant has passed when the outbox gets to send it: the timer begins with the
// one to which it was moved, or it would run before it could be moved. Where it was sent
// before, it is moved.
func TestATimerIsMovedBeforeItIsSent(t *testing.T) {
	onEach(t, func(w *world) {
		set := func() {
			w.in(func(tx *sql.Tx) {
				_, err := w.orders.After(w.Context(), -time.Second, CancelOrder{}, timers.Key("a"), timers.Tx(tx, w.dialect))
				require.NoError(w, err)
				for _, d := range []time.Duration{time.Hour, 3 * time.Hour} {
					_, err := w.orders.Reschedule(w.Context(), "a", timers.After(d), timers.Tx(tx, w.dialect))
					require.NoError(w, err)
				}
			})
		}
		set()
		require.Equal(w, []string{"set a"}, w.drain())
		w.fires("a", 3*time.Hour)
		set()
		require.Equal(w, []string{"set a", "reschedule a"}, w.drain())
		w.fires("a", 3*time.Hour)
		require.Zero(w, w.rows("1 = 1"))
	})
}

// taken lets another process have the moves, as it would while it sends them.
func (w *world) taken() (release func()) {
	w.Helper()
	if w.dialect == timers.SQLite {
		mark := func(due string) {
			_, err := w.db.ExecContext(w.Context(), "UPDATE carillon_timers SET due_at = "+due+" WHERE action = 'reschedule'")
			require.NoError(w, err)
		}
		mark("-4102444800000")
		return func() { mark("0") }
	}
	tx, err := w.db.BeginTx(w.Context(), nil)
	require.NoError(w, err)
	var id int64
	require.NoError(w, tx.QueryRowContext(w.Context(), "SELECT id FROM carillon_timers WHERE action = 'reschedule' FOR UPDATE").Scan(&id))
	return func() { require.NoError(w, tx.Rollback()) }
}

// Another process sends the move of a timer, or is about to: the timer waits for it.
func TestATimerWaitsForItsMove(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 1)
		w.move("order-0000", timers.After(2*time.Hour))
		release := w.taken()
		_, err := w.box.Drain(w.Context())
		require.NoError(w, err)
		require.Empty(w, w.admin.news())
		release()
		require.Equal(w, []string{"set order-0000"}, w.drain())
		w.fires("order-0000", 2*time.Hour)
		require.Zero(w, w.rows("1 = 1"))
	})
}

// A move that nobody can read keeps those behind it from being taken for done.
func TestAMoveThatIsDamaged(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 1)
		for _, d := range []time.Duration{2 * time.Hour, 3 * time.Hour, 4 * time.Hour} {
			w.move("order-0000", timers.After(d))
		}
		_, err := w.db.ExecContext(w.Context(), "UPDATE carillon_timers SET request = '{' WHERE id IN (SELECT id FROM (SELECT MIN(id) + 2 AS id FROM carillon_timers) AS damaged)")
		require.NoError(w, err)
		require.Equal(w, []string{"set order-0000", "reschedule order-0000"}, w.drain())
		w.fires("order-0000", 4*time.Hour)
		require.Equal(w, 1, w.rows("due_at IS NULL"))
	})
}

// cancelAndSet is how a key is set anew.
func (w *world) cancelAndSet(key string) {
	w.Helper()
	w.in(func(tx *sql.Tx) {
		_, err := w.orders.Cancel(w.Context(), key, timers.Tx(tx, w.dialect))
		require.NoError(w, err)
		_, err = w.orders.After(w.Context(), time.Hour, CancelOrder{}, timers.Key(key), timers.Tx(tx, w.dialect))
		require.NoError(w, err)
	})
}

// Sent again, a cancellation would end what the rows behind it have made: these are sent
// when it is deleted.
func TestWhatFollowsACancellationIsSentWithoutIt(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 1)
		w.drain()
		w.cancelAndSet("order-0000")
		var left []int
		w.admin.after = func() { left = append(left, w.rows("action = 'cancel'")) }
		require.Equal(w, []string{"cancel order-0000", "set order-0000"}, w.drain())
		require.Equal(w, []int{1, 0}, left)
		require.Zero(w, w.rows("1 = 1"))
	})
}

// A timer may fire between the commit that sets its key anew and the outbox.
func TestAKeyThatHasFiredIsSetAnew(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 1)
		w.drain()
		w.admin.timers["order-0000"].ended = true
		w.cancelAndSet("order-0000")
		w.drain()
		require.False(w, w.admin.timers["order-0000"].ended, "it is another one")
		require.Zero(w, w.rows("1 = 1"))

		w.admin.timers["order-0000"].ended = true
		w.set(0, 1)
		w.drain()
		require.Zero(w, w.rows("1 = 1"))
		require.Contains(w, w.log.String(), "a timer was not set: the one of its key has ended")
	})
}

// A timer is on its way when it is cancelled: nobody sends the cancellation before the
// answer is there.
func TestACancellationWaitsForItsTimer(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 2)
		arrived, release := w.holdFirst()
		first := make(chan error, 1)
		go func() { _, err := w.box.Drain(w.Context()); first <- err }()
		<-arrived
		require.Len(w, w.admin.news(), 2)
		w.cancel("order-0000")
		w.set(2, 3)
		for range 3 {
			_, err := w.newOutbox().Drain(w.Context())
			require.NoError(w, err)
		}
		require.Equal(w, []string{"set order-0002"}, w.admin.news())
		release()
		require.NoError(w, <-first)
		require.Equal(w, []string{"cancel order-0000"}, w.drain())
		require.Zero(w, w.rows("1 = 1"))
		require.Len(w, w.admin.timers, 2)
	})
}

// A timer that the admin does not take yet, or never, does not come back when it was
// cancelled.
func TestWhatIsCancelledIsNotTriedAgain(t *testing.T) {
	onEach(t, func(w *world) {
		w.admin.judge = func(key, _ string) string {
			return map[string]string{"order-0000": "quota_exceeded", "order-0001": "unfit_input"}[key]
		}
		w.set(0, 3)
		_, err := w.box.Drain(w.Context())
		require.NoError(w, err)
		require.Equal(w, 1, w.rows("due_at > 0"))
		require.Equal(w, 1, w.rows("due_at IS NULL"))
		w.admin.mu.Lock()
		w.admin.judge, w.admin.told = nil, nil
		w.admin.mu.Unlock()
		w.cancel("order-0000")
		w.cancel("order-0001")
		_, err = w.box.Drain(w.Context())
		require.NoError(w, err)
		require.ElementsMatch(w, []string{"cancel order-0000", "cancel order-0001"}, w.admin.news(), "the first one waits for no other try")
		require.Zero(w, w.rows("1 = 1"))
	})
}

// What stands behind a row that has to be tried again waits for it, also when it is
// more than a batch, and keeps no other out.
func TestWhatFollowsARetryWaits(t *testing.T) {
	onEach(t, func(w *world) {
		w.admin.judge = func(key, _ string) string {
			if key == "order-9999" || key == "order-0000" {
				return ""
			}
			return "quota_exceeded"
		}
		const all = 700
		w.set(0, all)
		for i := range all {
			w.move(keyOf(i), timers.After(2*time.Hour))
		}
		w.set(9999, 10_000)
		_, err := w.box.Drain(w.Context())
		require.NoError(w, err)
		told := w.admin.news()
		require.Contains(w, told, "set order-9999")
		require.Empty(w, slices.DeleteFunc(told, func(line string) bool { return strings.HasPrefix(line, "set") }))
		require.Equal(w, 2*(all-1), w.rows("due_at > 0"))
		require.Equal(w, all-1, w.rows("action = 'reschedule' AND attempts = 0"))
		w.admin.judge = nil
		require.Len(w, w.drain(), all-1)
		w.fires("order-0001", 2*time.Hour)
		require.Zero(w, w.rows("1 = 1"))
	})
}

// A cancel of what has ended or is not there is done, and a move that comes too late;
// a move of what is not there is set aside.
func TestChangesThatComeTooLate(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 2)
		w.drain()
		w.admin.timers["order-0000"].ended, w.admin.timers["order-0001"].ended = true, true
		w.cancel("order-0000")
		w.cancel("nobody")
		w.move("order-0001", timers.After(time.Hour))
		w.move("other", timers.After(time.Hour))
		w.drain()
		aside, err := w.box.SetAside(w.Context(), 10)
		require.NoError(w, err)
		require.Len(w, aside, 1)
		require.Equal(w, []string{"other", "reschedule"}, []string{aside[0].Key, aside[0].Action})
		require.Contains(w, aside[0].Err, "not_found")
		require.Equal(w, 1, w.rows("1 = 1"))

		w.set(7, 8)
		w.move("order-0007", timers.After(time.Hour))
		_, err = w.db.ExecContext(w.Context(), "UPDATE carillon_timers SET action = 'swap' WHERE timer_key = 'order-0007' AND action = 'set'")
		require.NoError(w, err)
		w.drain()
		require.Equal(w, 3, w.rows("due_at IS NULL"), "what a newer version wrote is set aside, and what follows finds no timer")
	})
}

// The handler has no timers, or the key is not for it: that is no answer for a
// cancellation.
func TestACancellationIsTriedAgain(t *testing.T) {
	onEach(t, func(w *world) {
		w.admin.whole = func(string) (int, string) { return http.StatusNotFound, "not_found" }
		w.cancel("order-0000")
		w.drain()
		require.Equal(w, 1, w.rows("due_at > 0 AND attempts = 1"))
		w.admin.whole = nil
		w.drain()
		require.Zero(w, w.rows("1 = 1"))
	})
}

func TestManyAreCancelledInATransaction(t *testing.T) {
	onEach(t, func(w *world) {
		w.set(0, 1234)
		w.drain()
		var keys []string
		for i := range 1234 {
			keys = append(keys, keyOf(i))
		}
		w.in(func(tx *sql.Tx) {
			answers, err := w.orders.CancelMany(w.Context(), keys, timers.Tx(tx, w.dialect))
			require.NoError(w, err)
			require.Equal(w, timers.Answer{Key: keys[1233], Outcome: timers.Written}, answers[1233])
		})
		require.Equal(w, 1234, w.rows("action = 'cancel'"))
		require.Len(w, w.drain(), 1234)
		require.Empty(w, w.admin.timers)
		require.Zero(w, w.rows("1 = 1"))
	})
}

// More rows of one key than are taken at once are sent in their order, too, and others
// are not kept out by them.
func TestManyRowsOfOneKey(t *testing.T) {
	onEach(t, func(w *world) {
		const all = 2_700
		items := make([]timers.Item[CancelOrder], all)
		for i := range items {
			items[i] = timers.Item[CancelOrder]{Key: "order-0000", When: timers.After(time.Hour)}
		}
		w.in(func(tx *sql.Tx) {
			_, err := w.orders.Many(w.Context(), items, timers.Tx(tx, w.dialect))
			require.NoError(w, err)
		})
		w.cancel("order-0000")
		w.set(1, 2)
		told := w.drain()
		require.Zero(w, w.rows("1 = 1"))
		require.True(w, slices.Contains(told, "set order-0001"))
		told = slices.DeleteFunc(told, func(line string) bool { return line == "set order-0001" })
		require.Less(w, len(told), all)
		require.Equal(w, "cancel order-0000", told[len(told)-1])
		require.Len(w, w.admin.timers, 1)

		// A row that has to be tried again is behind as many that have to, too.
		w.admin.judge = func(key, _ string) string { return map[string]string{"order-0000": "quota_exceeded"}[key] }
		w.in(func(tx *sql.Tx) {
			_, err := w.orders.Many(w.Context(), items, timers.Tx(tx, w.dialect))
			require.NoError(w, err)
		})
		_, err := w.box.Drain(w.Context())
		require.NoError(w, err)
		for _, due := range []string{
			"UPDATE carillon_timers SET due_at = 4102444800000",
			"UPDATE carillon_timers SET due_at = 1 WHERE id IN (SELECT id FROM (SELECT MAX(id) AS id FROM carillon_timers) AS last)",
		} {
			_, err = w.db.ExecContext(w.Context(), due)
			require.NoError(w, err)
		}
		w.admin.news()
		w.set(2, 3)
		_, err = w.box.Drain(w.Context())
		require.NoError(w, err)
		require.Equal(w, []string{"set order-0002"}, w.admin.news())
	})
}

// A key has more rows than are taken at once. Its timer has the last instant only, from
// its creation on and after each move. Earlier instants may have passed.
func TestATimerWithManyMoves(t *testing.T) {
	onEach(t, func(w *world) {
		const sets, moves = 2_100, 4_300
		last := time.Now().Add(3 * time.Hour)
		items := make([]timers.Item[CancelOrder], sets)
		for i := range items {
			items[i] = timers.Item[CancelOrder]{Key: "order-0000", When: timers.After(-time.Second)}
		}
		write := func(sets []timers.Item[CancelOrder]) {
			w.in(func(tx *sql.Tx) {
				_, err := w.orders.Many(w.Context(), sets, timers.Tx(tx, w.dialect))
				require.NoError(w, err)
				for i := range moves {
					_, err := w.orders.Reschedule(w.Context(), "order-0000", timers.At(last.Add(time.Duration(i-moves+1)*time.Hour)), timers.Tx(tx, w.dialect))
					require.NoError(w, err)
				}
			})
		}
		at := last.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z07:00")
		write(items)
		w.drain()
		require.Zero(w, w.rows("1 = 1"))
		require.Equal(w, []string{at}, slices.Compact(w.admin.ats))

		w.admin.ats = nil
		write(items[:0:0])
		w.drain()
		require.Zero(w, w.rows("1 = 1"))
		require.Equal(w, []string{at}, slices.Compact(w.admin.ats))
	})
}

// Keys that a database takes for the same are two.
func TestKeysThatDifferInCaseAlone(t *testing.T) {
	onEach(t, func(w *world) {
		w.in(func(tx *sql.Tx) {
			for _, key := range []string{"a", "A", "à"} {
				_, err := w.orders.After(w.Context(), time.Hour, CancelOrder{}, timers.Key(key), timers.Tx(tx, w.dialect))
				require.NoError(w, err)
			}
			_, err := w.orders.Cancel(w.Context(), "a", timers.Tx(tx, w.dialect))
			require.NoError(w, err)
		})
		_, err := w.db.ExecContext(w.Context(), "UPDATE carillon_timers SET due_at = 4102444800000 WHERE id IN (SELECT id FROM (SELECT MIN(id) AS id FROM carillon_timers) AS first)")
		require.NoError(w, err)
		_, err = w.box.Drain(w.Context())
		require.NoError(w, err)
		require.ElementsMatch(w, []string{"cancel a", "set A", "set à"}, w.admin.news())
		require.Zero(w, w.rows("1 = 1"))
	})
}
