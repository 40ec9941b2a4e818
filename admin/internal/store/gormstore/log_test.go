package gormstore

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/logchunk"
)

// logWorld has one run to log for.
type logWorld struct {
	*world
	run domain.Execution
}

func newLogWorld(tb testing.TB, o Options) *logWorld {
	w := newWorld(tb, openStore(tb, o), 1, domain.BlockParallel)
	return &logWorld{world: w, run: w.plan(1)[0]}
}

func (w *logWorld) say(attempt int, from, to int64, text string) {
	w.tb.Helper()
	require.NoError(w.tb, w.trySay(attempt, from, to, text))
}

func (w *logWorld) trySay(attempt int, from, to int64, text string) error {
	c := domain.LogChunk{TenantID: w.tenant, ExecutionID: w.run.ID, Attempt: attempt, FirstLine: from}
	for n := from; n <= to; n++ {
		c.Lines = append(c.Lines, domain.LogLine{Number: n, Attempt: attempt, At: time.UnixMilli(1800000000000 + n).UTC(), Message: text})
	}
	_, err := w.s.AppendLogs(w.tb.Context(), []store.LogAppend{{Tenant: w.tenant, Executor: w.executor, Chunks: []domain.LogChunk{c}}})
	return err
}

func (w *logWorld) read(p store.ReadLogParams) store.LogPage {
	w.tb.Helper()
	p.Tenant, p.Execution = w.tenant, w.run.ID
	if p.Attempt == 0 {
		p.Attempt = 1
	}
	page, err := w.s.ReadLog(w.tb.Context(), p)
	require.NoError(w.tb, err)
	return page
}

func (w *logWorld) messages(p store.ReadLogParams) (out []string) {
	w.tb.Helper()
	for _, l := range w.read(p).Lines {
		out = append(out, l.Message)
	}
	return out
}

func (w *logWorld) usage(day int64) (lines, bytes int64) {
	w.tb.Helper()
	require.NoError(w.tb, db.Query(w.tb.Context(), w.s.Read, func(rows *sql.Rows) error { return rows.Scan(&lines, &bytes) },
		"SELECT line_count, bytes FROM log_usage WHERE tenant_id = ? AND day = ?", int64(w.tenant), day))
	return lines, bytes
}

// stored is what log_usage should say of the chunks.
func (w *logWorld) stored() (bytes int64) {
	w.tb.Helper()
	require.NoError(w.tb, db.Query(w.tb.Context(), w.s.Read, func(rows *sql.Rows) error { return rows.Scan(&bytes) },
		"SELECT COALESCE(SUM(body_bytes), 0) FROM log_chunks WHERE tenant_id = ?", int64(w.tenant)))
	return bytes
}

func TestLogLimitOfARun(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.LogLimits = store.LogLimits{RunLines: 10}
			w := newLogWorld(t, o)
			w.say(1, 1, 4, "a")
			w.say(2, 1, 4, "b") // another attempt of the run
			w.say(2, 5, 8, "c")
			const note = "lines dropped: the run's log is over its limit"
			require.Equal(t, []string{"b", "b", "b", "b", "c", "c", "c", "c"}, w.messages(store.ReadLogParams{Attempt: 2}), "the end is kept")
			w.say(2, 9, 12_351, "d")
			page := w.read(store.ReadLogParams{Attempt: 2, After: 5})
			require.Equal(t, int64(12_351), page.LastLine, "a reader knows that nothing is missing")
			require.Equal(t, int64(12_351), page.Reached)
			require.Len(t, page.Lines, 1+1+100)
			require.Equal(t, []string{"c", "… 12,245 " + note, "d"}, []string{page.Lines[0].Message, page.Lines[1].Message, page.Lines[2].Message})
			require.Equal(t, int64(7), page.Lines[1].Number)
			require.Equal(t, int64(12_252), page.Lines[2].Number)
			require.JSONEq(t, `{"dropped":12245}`, string(page.Lines[1].Attrs))
			require.Equal(t, 4, page.Lines[1].Level)
			failures := 8
			require.Empty(t, w.messages(store.ReadLogParams{Attempt: 2, MinLevel: &failures}))
			require.Equal(t, []string{"… 12,245 " + note}, w.messages(store.ReadLogParams{Attempt: 2, Text: "dropped"}))
			require.Equal(t, []string{"d", "d"}, w.messages(store.ReadLogParams{Attempt: 2, Before: 1 << 60, Limit: 2}))
			w.say(2, 12_000, 12_351, "a resend")
			require.Len(t, w.read(store.ReadLogParams{Attempt: 2}).Lines, 6+1+100)
			w.say(2, 12_352, 12_352, "the end")
			w.say(2, 12_360, 12_360, "… 7 lines dropped: they came faster than they could be stored")
			page = w.read(store.ReadLogParams{Attempt: 2, After: 12_351})
			require.Equal(t, "the end", page.Lines[0].Message)
			require.Contains(t, page.Lines[1].Message, "… 7 lines")
			w.say(2, 12_361, 12_460, strings.Repeat("x", 4000))
			require.Equal(t, "… 12,446 "+note, w.messages(store.ReadLogParams{Attempt: 2, After: 6})[0], "with the seven that the executor dropped")
			counts, err := w.s.CountLog(t.Context(), w.tenant, w.run.ID)
			require.NoError(t, err)
			require.Equal(t, []store.LogCount{{Attempt: 1, LastLine: 4, Kept: 4}, {Attempt: 2, LastLine: 12_460, Kept: 6 + 8, CutByRun: 12_446}}, counts)
			counts, err = w.s.CountLog(t.Context(), w.tenant+1, w.run.ID)
			require.NoError(t, err)
			require.Empty(t, counts)
			lines, _ := w.usage(engine.DayOf(time.Now()))
			require.EqualValues(t, 10, lines)
			_, bytes := w.usage(0)
			require.Equal(t, w.stored(), bytes)
		})
	}
}

func TestLogLimitOfATenantsDay(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.LogLimits = store.LogLimits{TenantDayBytes: 1000}
			w := newLogWorld(t, o)
			w.say(1, 1, 1, strings.Repeat("x", 800))
			w.say(1, 2, 3, strings.Repeat("y", 300))
			w.say(1, 4, 4, "short ones do not slip in")
			require.Len(t, w.messages(store.ReadLogParams{}), 4, "the end is kept")
			w.say(1, 5, 24, "z")
			require.Equal(t, []string{"… 13 lines dropped: the tenant's logs are over their limit for a day", "z"}, w.messages(store.ReadLogParams{})[1:3])
			require.Len(t, w.messages(store.ReadLogParams{}), 1+1+10)
			// The day is over.
			ctx := t.Context()
			require.NoError(t, w.s.Run(ctx, "next day", func(t *db.Tx) error {
				if _, err := t.Exec(ctx, "DELETE FROM log_usage WHERE day > 0"); err != nil {
					return err
				}
				_, err := t.Exec(ctx, "UPDATE log_chunks SET last_at = last_at - 86400000 WHERE cut > 0")
				return err
			}))
			w.say(1, 25, 25, "a new day")
			require.Equal(t, []string{"z", "a new day"}, w.messages(store.ReadLogParams{After: 23}))
			w.say(1, 29, 29, "after three that the executor dropped")
			counts, err := w.s.CountLog(t.Context(), w.tenant, w.run.ID)
			require.NoError(t, err)
			require.Equal(t, []store.LogCount{{Attempt: 1, LastLine: 29, Kept: 13, CutByDay: 13}}, counts)
			_, bytes := w.usage(0)
			require.Equal(t, w.stored(), bytes)
		})
	}
}

func TestOldestLogsGoWhenATenantHasTooMany(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			w := newLogWorld(t, options(t))
			runs := append([]domain.Execution{w.run}, w.plan(9)...)
			for i, run := range runs {
				w.run = run
				w.say(1, 1, 200, fmt.Sprintf("%x %s", i*7919, time.Now()))
			}
			_, before := w.usage(0)
			require.Equal(t, w.stored(), before)
			n, err := w.s.TrimLogs(t.Context(), before, 100)
			require.NoError(t, err)
			require.Zero(t, n, "not over the limit")
			n, err = w.s.TrimLogs(t.Context(), before/2, 2)
			require.NoError(t, err)
			require.EqualValues(t, 2, n, "in bounded steps")
			for n > 0 {
				n, err = w.s.TrimLogs(t.Context(), before/2, 2)
				require.NoError(t, err)
			}
			_, after := w.usage(0)
			require.Equal(t, w.stored(), after)
			require.LessOrEqual(t, after, before/2)
			require.Greater(t, after, before/4)
			for i, run := range runs {
				w.run = run
				if lines := len(w.read(store.ReadLogParams{}).Lines); i == 0 {
					require.Zero(t, lines, "the oldest")
				} else if i == len(runs)-1 {
					require.Equal(t, 200, lines, "the newest")
				}
			}
		})
	}
}

// Two nodes get the same lines, cut differently, at the same time; one of them
// writes small chunks anew, the other one does not.
func TestResendsOnTwoNodesAtOnce(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			w := newLogWorld(t, o)
			other, err := Open(t.Context(), o)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, other.Close()) })
			second := &logWorld{world: &world{tb: t, s: other, tenant: w.tenant, executor: w.executor}, run: w.run}
			for round := range int64(30) {
				from := round*10 + 1
				var wait sync.WaitGroup
				for i, one := range []*logWorld{w, second, w, second} {
					wait.Go(func() {
						if err := one.trySay(1, from, from+int64(9-i), strings.Repeat("z", int(round*40))); err != nil {
							t.Errorf("append: %v", err)
						}
					})
				}
				wait.Wait()
				w.say(1, from, from+9, strings.Repeat("z", int(round*40))) // the longest one may have come first and lost
			}
			page := w.read(store.ReadLogParams{})
			require.Len(t, page.Lines, 300)
			for i, l := range page.Lines {
				require.EqualValues(t, i+1, l.Number)
			}
			_, bytes := w.usage(0)
			require.Equal(t, w.stored(), bytes)
		})
	}
}

// A chunk of a format that this version does not know, written by a node of a
// newer one, stays as it is: what comes behind it gets a chunk of its own.
func TestAppendsLeaveOtherFormatsAlone(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			w := newLogWorld(t, options(t))
			ctx := t.Context()
			require.NoError(t, w.s.Run(ctx, "newer chunk", func(t *db.Tx) error {
				_, err := t.Exec(ctx, "INSERT INTO log_chunks (tenant_id, execution_id, attempt, first_line, last_line, line_count, levels, format, body) VALUES (?, ?, 1, 1, 2, 2, ?, ?, 'x')",
					int64(w.tenant), int64(w.run.ID), int64(logchunk.AllLevels), logchunk.Format+1)
				return err
			}))
			w.say(1, 2, 4, "new")
			var formats []int
			require.NoError(t, db.Query(ctx, w.s.Read, func(rows *sql.Rows) error {
				var format int
				err := rows.Scan(&format)
				formats = append(formats, format)
				return err
			}, "SELECT format FROM log_chunks WHERE tenant_id = ? AND execution_id = ? AND attempt = 1 ORDER BY first_line", int64(w.tenant), int64(w.run.ID)))
			require.Equal(t, []int{logchunk.Format + 1, logchunk.Format}, formats)
		})
	}
}
