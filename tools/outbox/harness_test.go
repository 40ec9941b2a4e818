package outbox

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite"

	"github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
	"github.com/carillon-sched/carillon/internal/testenv"
)

func TestMain(m *testing.M) {
	if os.Getenv(envDoomed) != "" {
		drainAndDie()
	}
	goleak.VerifyTestMain(m)
}

type CancelOrder struct {
	Order int `json:"order"`
}

// database names one by its driver.
type database struct {
	dialect     timers.Dialect
	driver, dsn string
}

// kinds are the databases that all tests run on, and with the tag proof PostgreSQL too.
var kinds = map[timers.Dialect]func(t *testing.T) database{
	timers.SQLite: func(t *testing.T) database {
		path := filepath.Join(t.TempDir(), "app.db")
		return database{timers.SQLite, "sqlite", "file:" + path + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_txlock=immediate"}
	},
	timers.MySQL: func(t *testing.T) database { return database{timers.MySQL, "mysql", plainMySQL(testenv.Database(t))} },
}

// onEach runs test on a database of each kind.
func onEach(t *testing.T, test func(w *world)) {
	for dialect, make := range kinds {
		t.Run(string(dialect), func(t *testing.T) { test(newWorld(t, make(t))) })
	}
}

// plainMySQL takes away what this project sets and users do not: their isolation
// is the server's own, which is repeatable read, and parameters are bound.
func plainMySQL(dsn string) string {
	base, _, _ := strings.Cut(dsn, "?")
	return base
}

// world is an application with its database, and an admin.
type world struct {
	*testing.T
	database
	db     *sql.DB
	admin  *admin
	client *proxy.Client
	box    *timers.Outbox
	orders timers.Handler[CancelOrder]
	log    *bytes.Buffer
}

func newWorld(t *testing.T, d database) *world {
	db, err := sql.Open(d.driver, d.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	a := &admin{timers: map[string]*timer{}}
	w := &world{T: t, database: d, db: db, admin: a, log: &bytes.Buffer{}, client: clientOf(t, serve(t, a))}
	w.orders = timers.New[CancelOrder](w.client, "shop", "cancel-order")
	w.box = w.newOutbox()
	require.NoError(t, w.box.Create(t.Context()))
	return w
}

func clientOf(t *testing.T, url string) *proxy.Client {
	client, err := proxy.New(proxy.Config{URL: url, Key: "ck_1", HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	require.NoError(t, err)
	return client
}

func (w *world) newOutbox() *timers.Outbox {
	box, err := timers.NewOutbox(timers.OutboxConfig{
		Client: w.client, DB: w.db, Dialect: w.dialect, Interval: time.Hour, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
	})
	require.NoError(w, err)
	return box
}

// in runs do in a transaction, which is committed.
func (w *world) in(do func(tx *sql.Tx)) {
	w.Helper()
	tx, err := w.db.BeginTx(w.Context(), nil)
	require.NoError(w, err)
	defer func() { _ = tx.Rollback() }()
	do(tx)
	require.NoError(w, tx.Commit())
}

// set writes timers with keys for the orders from to to-1.
func (w *world) set(from, to int, opts ...timers.Option) {
	w.Helper()
	items := make([]timers.Item[CancelOrder], 0, to-from)
	for i := from; i < to; i++ {
		items = append(items, timers.Item[CancelOrder]{Key: keyOf(i), When: timers.After(time.Hour), Input: CancelOrder{i}})
	}
	w.in(func(tx *sql.Tx) {
		_, err := w.orders.Many(w.Context(), items, append(opts, timers.Tx(tx, w.dialect))...)
		require.NoError(w, err)
	})
}

// rows counts those of the table for which the condition holds.
func (w *world) rows(condition string) int {
	w.Helper()
	var n int
	require.NoError(w, w.db.QueryRowContext(w.Context(), "SELECT COUNT(*) FROM carillon_timers WHERE "+condition).Scan(&n))
	return n
}

// timer is one that the admin has, and how often it was asked for.
type timer struct {
	request map[string]any
	asked   int
	ended   bool
}

// admin takes timers, cancellations and moves as the API does.
type admin struct {
	mu       sync.Mutex // guards what follows
	timers   map[string]*timer
	requests int
	told     []string // what it was asked for: an action and a key
	// cancelled are the request names of cancelled timers, by key.
	cancelled map[string]any
	ats       []string // the instants that it was asked for
	// judge says what is wrong with a timer: a code; "" = nothing.
	judge func(key, handler string) string
	// whole refuses whole requests: a status and a code.
	whole func(text string) (status int, code string)
	// after is called when a batch was taken, before the answer.
	after func()
}

func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	status, answer, after := a.take(r.URL.Path, string(raw))
	if after != nil {
		after()
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (a *admin) take(path, raw string) (status int, answer any, after func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests++
	if a.whole != nil {
		if status, code := a.whole(raw); code != "" {
			return status, map[string]any{"code": code, "detail": "the whole of it"}, nil
		}
	}
	var in struct {
		Timers    []map[string]any
		Keys      []string
		At        string
		FreeEnded bool
	}
	if err := json.Unmarshal([]byte(raw), &in); err != nil {
		return http.StatusBadRequest, map[string]any{"code": "malformed_json"}, nil
	}
	items := []map[string]any{}
	if key, found := strings.CutSuffix(path, "/reschedule"); found {
		key = key[strings.LastIndex(key, "/")+1:]
		a.told = append(a.told, "reschedule "+key)
		switch t := a.timers[key]; {
		case t == nil:
			return http.StatusNotFound, map[string]any{"code": "not_found"}, nil
		case t.ended:
			return http.StatusConflict, map[string]any{"code": "already_finished"}, nil
		default:
			t.request["at"] = in.At
			a.ats = append(a.ats, in.At)
			return http.StatusOK, map[string]any{"key": key, "fireAt": in.At}, a.after
		}
	}
	for _, key := range in.Keys {
		a.told = append(a.told, "cancel "+key)
		outcome := "not_found"
		if t := a.timers[key]; t != nil && t.ended {
			outcome = "already_finished"
			if in.FreeEnded {
				delete(a.timers, key)
			}
		} else if t != nil {
			outcome = "cancelled"
			if a.cancelled == nil {
				a.cancelled = map[string]any{}
			}
			a.cancelled[key] = t.request["requestId"]
			delete(a.timers, key)
		}
		items = append(items, map[string]any{"key": key, "outcome": outcome})
	}
	for _, t := range in.Timers {
		key, handler := t["key"].(string), t["handler"].(string)
		a.told, a.ats = append(a.told, "set "+key), append(a.ats, t["at"].(string))
		if a.judge != nil {
			if code := a.judge(key, handler); code != "" {
				outcome := "invalid"
				if code == "unavailable" {
					outcome = "failed"
				}
				items = append(items, map[string]any{"key": key, "outcome": outcome, "problem": map[string]any{"code": code, "detail": "wrong"}})
				continue
			}
		}
		outcome, state := "kept", "pending"
		if name := t["requestId"]; a.timers[key] == nil && name != nil && a.cancelled[key] == name {
			items = append(items, map[string]any{"key": key, "outcome": outcome, "state": "cancelled", "fireAt": t["at"]})
			continue
		}
		switch old := a.timers[key]; {
		case old == nil:
			outcome, a.timers[key] = "created", &timer{request: t}
		case old.ended:
			state = "succeeded"
		}
		a.timers[key].asked++
		items = append(items, map[string]any{"key": key, "outcome": outcome, "state": state, "fireAt": t["at"]})
	}
	return http.StatusOK, map[string]any{"items": items}, a.after
}

// holdFirst has the first answer wait for release; arrived is closed when it does.
func (w *world) holdFirst() (arrived chan struct{}, release func()) {
	arrived, released := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	w.Cleanup(release)
	var second atomic.Bool
	w.admin.after = func() {
		if !second.Swap(true) {
			close(arrived)
			<-released
		}
	}
	return arrived, release
}

// has counts the timers, and how often they were asked for in all.
func (a *admin) has() (timers, asked int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.timers {
		timers, asked = timers+1, asked+t.asked
	}
	return timers, asked
}

// serve has handler answer at a URL of its own, until the test ends.
func serve(t *testing.T, handler http.Handler) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func inputOf(t *testing.T, request json.RawMessage) string {
	var r struct{ Input json.RawMessage }
	require.NoError(t, json.Unmarshal(request, &r))
	return string(r.Input)
}

func keyOf(order int) string { return fmt.Sprintf("order-%04d", order) }
