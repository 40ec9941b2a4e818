//go:build proof

package admin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// witness counts what ran, by what it ran for.
type witness struct {
	mu   sync.Mutex
	runs map[string]int // guarded by mu
}

func (w *witness) saw(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[what]++
}

func (w *witness) has(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[what] > 0
}

// pair is two cells, a tenant in the first one, and what it runs.
type pair struct {
	t        *testing.T
	from, to *node
	configs  [2]admin.Config
	tenant   string // its id
	key      string // of the tenant
	witness  *witness
	tick     string // a job of each second
	began    time.Time
	left     int64 // ends in the journal that had no run
}

func newPair(t *testing.T, from, to func(*testing.T, string) string) *pair {
	p := &pair{t: t, witness: &witness{runs: map[string]int{}}}
	key := filepath.Join(t.TempDir(), "sealing.key")
	for i, database := range []func(*testing.T, string) string{from, to} {
		n := startNode(t, func(c *admin.Config) {
			c.Database, c.SealingKeyFile, c.NodeNumbers = database(t, c.DataDir), key, []string{"1-511", "512-1023"}[i]
			p.configs[i] = *c
		})
		if i == 0 {
			p.from = n
		} else {
			p.to = n
		}
	}
	p.from.do(http.MethodPut, "/api/v1/cells/other", map[string]any{"url": p.to.url, "executors": []string{p.to.admin.ExecutorAddress()}}, nil, 200)
	p.to.do(http.MethodPut, "/api/v1/cells/first", map[string]any{"url": p.from.url, "executors": []string{p.from.admin.ExecutorAddress()}}, nil, 200)

	acme := p.from
	home := acme.token
	var tenant struct{ ID string }
	acme.do(http.MethodPost, "/api/v1/tenants", map[string]any{"name": "acme"}, &tenant, 201)
	p.tenant = tenant.ID
	var in struct{ AccessToken string }
	acme.do(http.MethodPost, "/api/v1/auth/tenant", map[string]any{"tenant": "acme"}, &in, 200)
	acme.token = in.AccessToken
	var made struct{ ID, Secret string }
	acme.do(http.MethodPost, "/api/v1/executors", map[string]any{"name": "shop"}, &made, 201)
	acme.do(http.MethodPost, "/api/v1/executors/"+made.ID+"/join-tokens", map[string]any{"name": "shop"}, &made, 201)
	token := made.Secret
	acme.do(http.MethodPost, "/api/v1/api-keys", map[string]any{"name": "program", "role": "admin"}, &made, 201)
	p.key = made.Secret
	ex, err := executor.New(executor.Config{
		Name: "shop", Addresses: []string{acme.admin.ExecutorAddress()}, Token: executor.Secret(token), JournalDir: t.TempDir(),
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	})
	require.NoError(t, err)
	executor.HandleFunc(ex, "tick", func(ctx context.Context) error {
		p.witness.saw("tick " + executor.TaskFrom(ctx).FireTime.Format(time.RFC3339Nano))
		return nil
	})
	// By their keys: an instant that has passed before the request is read is another one.
	executor.Handle(ex, "timer", func(_ context.Context, key string) (struct{}, error) {
		p.witness.saw("timer " + key)
		return struct{}{}, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	<-ex.Ready()
	p.tick = acme.newJob("shop", "tick", map[string]any{
		"schedule": map[string]any{"kind": "fixed_rate", "every": "1s", "zone": "UTC"}, "misfire": map[string]any{"policy": "all", "maxRuns": 600},
	})
	acme.token = home
	p.began = time.Now()
	return p
}

// setTimers sets timers a tenth of a second apart, and returns what the witness is to see.
func (p *pair) setTimers(n *node, from time.Time, count int) (names []string) {
	p.t.Helper()
	var list []map[string]any
	for i := range count {
		key := fmt.Sprintf("%d-%d", from.UnixNano(), i)
		names = append(names, "timer "+key)
		list = append(list, map[string]any{"executor": "shop", "handler": "timer", "key": key, "input": key, "at": from.Add(time.Duration(i) * 100 * time.Millisecond).UTC().Format("2006-01-02T15:04:05.000Z07:00")})
	}
	var answer struct{ Created int }
	p.as(n, http.MethodPost, "/api/v1/timers/batch", map[string]any{"timers": list}, &answer, 200)
	require.Equal(p.t, count, answer.Created)
	return names
}

// as asks a node with the tenant's key.
func (p *pair) as(n *node, method, path string, in, out any, status int) {
	p.t.Helper()
	other := *n
	other.token = p.key
	other.do(method, path, in, out, status)
}

func (p *pair) move(change func(*admin.MoveTenantOptions)) (admin.TenantMove, error) {
	o := admin.MoveTenantOptions{Tenant: "acme", Cell: "other", Wait: time.Minute, Logger: slog.New(slog.NewTextHandler(testWriter{p.t}, nil))}
	change(&o)
	return admin.MoveTenant(p.t.Context(), p.configs[0], p.configs[1], o)
}

// exchanged moves the other way.
func (p *pair) exchanged(change func(*admin.MoveTenantOptions)) (admin.TenantMove, error) {
	other := *p
	other.configs = [2]admin.Config{p.configs[1], p.configs[0]}
	return other.move(func(o *admin.MoveTenantOptions) {
		o.Cell = "first"
		change(o)
	})
}

// judge waits until all timers have run, and the job for a while after it; each fire
// time has to have run once.
func (p *pair) judge(timers []string) {
	p.t.Helper()
	last := time.Now().Truncate(time.Second).Add(2 * time.Second)
	var late []string
	p.to.eventually(func() bool {
		late = slices.DeleteFunc(slices.Clone(timers), p.witness.has)
		return len(late) == 0
	}, func() string {
		return fmt.Sprintf("timers have not run: %v\nof the runs in the source:\n%sin the target:\n%s", late, p.waiting(0), p.waiting(1))
	})
	// One that found no executor yet starts after the next one.
	p.to.eventually(func() bool { return len(p.missing(last)) == 0 }, func() string { return fmt.Sprintf("fire times are missing: %v", p.missing(last)) })
	p.witness.mu.Lock()
	defer p.witness.mu.Unlock()
	ticks := 0
	for what, n := range p.witness.runs {
		require.Equal(p.t, 1, n, "%s ran %d times", what, n)
		if strings.HasPrefix(what, "tick ") {
			ticks++
		}
	}
	require.Len(p.t, p.witness.runs, ticks+len(timers))
}

// missing are the fire times of the job from the first one that ran to the last one
// that did, and until at least last, that have not run.
func (p *pair) missing(last time.Time) (out []string) {
	p.witness.mu.Lock()
	defer p.witness.mu.Unlock()
	var ran []time.Time
	for what := range p.witness.runs {
		if at, err := time.Parse("tick "+time.RFC3339Nano, what); err == nil {
			ran = append(ran, at)
		}
	}
	if len(ran) == 0 {
		return []string{"all"}
	}
	slices.SortFunc(ran, time.Time.Compare)
	ran = append(ran, last.Add(time.Second))
	for n := 1; n < len(ran); n++ {
		for at := ran[n-1].Add(time.Second); at.Before(ran[n]); at = at.Add(time.Second) {
			out = append(out, at.Format(time.TimeOnly))
		}
	}
	return out
}

// waiting are the runs and timers of the tenant in a database that have not succeeded.
func (p *pair) waiting(of int) string {
	p.t.Helper()
	var out strings.Builder
	for _, query := range []string{
		"SELECT 'run', id, fire_at, state, reason, message, wake_at, not_before, expire_at, fence, version, part, note FROM executions WHERE tenant_id = ? AND state <> ?",
		"SELECT 'timer', id, fire_at, '', '', '', 0, 0, 0, 0, 0, part, timer_key FROM timers WHERE tenant_id = ? AND part <> -?",
	} {
		rows, err := p.open(of).QueryContext(p.t.Context(), query, p.tenant, int(domain.Succeeded))
		require.NoError(p.t, err)
		for rows.Next() {
			values := make([]any, 13)
			into := make([]any, len(values))
			for i := range values {
				into[i] = &values[i]
			}
			require.NoError(p.t, rows.Scan(into...))
			for _, v := range values {
				if text, is := v.([]byte); is {
					v = string(text)
				}
				fmt.Fprintf(&out, "%v ", v)
			}
			out.WriteByte('\n')
		}
		require.NoError(p.t, rows.Err())
	}
	return out.String()
}

// open opens a database of the pair until the test ends.
func (p *pair) open(of int) *sql.DB {
	p.t.Helper()
	driver, dsn, _ := strings.Cut(p.configs[of].Database, ":")
	if driver == "sqlite" {
		dsn = "file:" + dsn + "?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, dsn)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, db.Close()) })
	return db
}

// leaveAnEnd makes the source's nodes wait until they count ends again, and writes one
// more into their outbox.
func (p *pair) leaveAnEnd() {
	p.t.Helper()
	db := p.open(0)
	_, err := db.ExecContext(p.t.Context(), "UPDATE cluster_values SET value = ? WHERE name = 'statistics_counted'", strconv.FormatInt(time.Now().UnixMilli(), 10))
	require.NoError(p.t, err)
	job, err := strconv.ParseInt(p.tick, 10, 64)
	require.NoError(p.t, err)
	end := domain.RunEnd{Job: domain.JobID(job), Minute: time.Now().Unix() / 60, State: domain.Failed, Late: -1, Took: -1}
	require.NoError(p.t, db.QueryRowContext(p.t.Context(), "SELECT tenant_id, executor_id FROM jobs WHERE id = ?", job).Scan(&end.Tenant, &end.Executor))
	_, err = db.ExecContext(p.t.Context(), "INSERT INTO outbox (topic, id, body) VALUES (1, ?, ?)", domain.IDFloor(time.Now()), record.EncodeEnds([]domain.RunEnd{end}))
	require.NoError(p.t, err)
	p.left++
}

// counts: the statistics of the target count each run once, wherever it ended.
func (p *pair) counts() {
	p.t.Helper()
	runs := func() int64 {
		p.witness.mu.Lock()
		defer p.witness.mu.Unlock()
		return int64(len(p.witness.runs)) + p.left
	}
	least := runs()
	var statistics struct{ Total struct{ Runs, Failed int64 } }
	p.to.eventually(func() bool {
		p.as(p.to, http.MethodGet, "/api/v1/statistics?step=minute", nil, &statistics, 200)
		return statistics.Total.Runs >= least
	}, func() string { return fmt.Sprintf("%d runs are counted, of %d", statistics.Total.Runs, least) })
	require.LessOrEqual(p.t, statistics.Total.Runs, runs())
	require.Equal(p.t, p.left, statistics.Total.Failed)
}

var cellPairs = map[string][2]string{"sqlite to mysql": {"sqlite", "mysql"}, "mysql to mysql": {"mysql", "mysql"}, "mysql to sqlite": {"mysql", "sqlite"}}

// A tenant moves under load: each fire time and timer runs once, in one of the cells,
// and whoever asks the former cell is led to the new one.
func TestATenantMoves(t *testing.T) {
	t.Parallel()
	for name, products := range cellPairs {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, databases[products[0]], databases[products[1]])
			timers := p.setTimers(p.from, time.Now().Add(time.Second), 150)
			p.from.eventually(func() bool { return p.witness.has(timers[10]) }, func() string { return "no timer runs" })
			_, err := p.move(func(o *admin.MoveTenantOptions) { o.DryRun = true })
			require.NoError(t, err)
			report, err := p.move(func(o *admin.MoveTenantOptions) {
				o.Step = func(name string) error {
					if name == "copy the rest" {
						p.leaveAnEnd()
					}
					return nil
				}
			})
			require.NoError(t, err)
			t.Logf("%+v", report)
			var problem struct {
				Code string
				Cell struct{ URL string }
			}
			p.from.eventually(func() bool { return p.status(p.from) == 421 }, func() string { return "the source does not say where the tenant is" })
			p.as(p.from, http.MethodGet, "/api/v1/jobs", nil, &problem, 421)
			require.Equal(t, []string{"tenant_elsewhere", p.to.url}, []string{problem.Code, problem.Cell.URL})
			p.to.eventually(func() bool { return p.reaches(p.to) }, func() string { return "the target does not serve the tenant" })
			timers = append(timers, p.setTimers(p.to, time.Now().Add(2*time.Second), 20)...)
			p.judge(timers)
			p.counts()
			var job struct{ Name, State string }
			p.as(p.to, http.MethodGet, "/api/v1/jobs/"+p.tick, nil, &job, 200)
			require.Equal(t, "enabled", job.State)
			_, err = p.move(func(o *admin.MoveTenantOptions) { o.Abort = true })
			require.ErrorContains(t, err, "has moved already")
			_, err = p.move(func(o *admin.MoveTenantOptions) { o.DryRun = true })
			require.ErrorContains(t, err, "has moved already")
			again, err := p.move(func(*admin.MoveTenantOptions) {})
			require.NoError(t, err, "a move that was done is done")
			require.Empty(t, again.Rows)
		})
	}
}

// reaches reports whether a node serves the tenant.
func (p *pair) reaches(n *node) bool { return p.status(n) == 200 }

func (p *pair) status(n *node) int {
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, n.url+"/api/v1/jobs", nil)
	require.NoError(p.t, err)
	req.Header.Set("Authorization", "Bearer "+p.key)
	res, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	require.NoError(p.t, res.Body.Close())
	return res.StatusCode
}

// A move that ends before any of its steps is gone on with by the same call, and ended
// by another one as long as the tenant is not the target's. It comes back the same way.
func TestAMoveThatEndsAnywhere(t *testing.T) {
	t.Parallel()
	p := newPair(t, databases["mysql"], databases["sqlite"])
	timers := p.setTimers(p.from, time.Now().Add(time.Second), 300)
	stopped := errors.New("the program ends here")
	ends := func(at string) error {
		_, err := p.move(func(o *admin.MoveTenantOptions) {
			o.Step = func(name string) error {
				if name == at {
					return stopped
				}
				return nil
			}
		})
		return err
	}
	for _, at := range []string{"copy what has settled", "fence", "leave"} {
		require.ErrorIs(t, ends(at), stopped, at)
		// With both sides exchanged nothing is done, above all not to what the source has.
		_, err := p.exchanged(func(o *admin.MoveTenantOptions) { o.Abort = true })
		require.ErrorContains(t, err, "is on its way to this cell", at)
		_, err = p.exchanged(func(*admin.MoveTenantOptions) {})
		require.ErrorContains(t, err, "is on its way to this cell", at)
		_, err = p.move(func(o *admin.MoveTenantOptions) { o.Abort = true })
		require.NoError(t, err, at)
		_, err = p.move(func(o *admin.MoveTenantOptions) { o.Abort = true })
		require.ErrorContains(t, err, "no move", at)
		p.from.eventually(func() bool { return p.reaches(p.from) }, func() string { return "the source does not serve the tenant" })
	}
	for _, at := range []string{"announce", "copy what has settled", "wait for runs", "fence", "copy the rest", "leave", "take up", "enable"} {
		require.ErrorIs(t, ends(at), stopped, at)
	}
	_, err := p.move(func(o *admin.MoveTenantOptions) { o.Abort = true })
	require.ErrorContains(t, err, "has moved already")
	_, err = p.move(func(*admin.MoveTenantOptions) {})
	require.NoError(t, err)
	p.to.eventually(func() bool { return p.reaches(p.to) }, func() string { return "the target does not serve the tenant" })
	// A move back that is given up: from where it lived before all are led here again.
	leads := func() bool { return p.status(p.from) == 421 }
	for _, at := range []string{"copy what has settled", "leave"} {
		_, err = p.exchanged(func(o *admin.MoveTenantOptions) {
			o.Step = func(name string) error {
				if name == at {
					return stopped
				}
				return nil
			}
		})
		require.ErrorIs(t, err, stopped)
		p.from.eventually(func() bool { return p.status(p.from) == 503 }, func() string { return "it is not on its way" })
		_, err = p.exchanged(func(o *admin.MoveTenantOptions) { o.Abort = true })
		require.NoError(t, err)
		p.from.eventually(leads, func() string { return "the former cell does not say any more where the tenant is" })
	}
	// And back, where it goes on as well, by the name that it has got meanwhile.
	p.to.patch("/api/v1/tenants/"+p.tenant, map[string]any{"name": "acme-2"})
	_, err = p.exchanged(func(o *admin.MoveTenantOptions) { o.Tenant = "acme-2" })
	require.NoError(t, err)
	p.from, p.to = p.to, p.from
	var tenant struct{ Name string }
	p.to.do(http.MethodGet, "/api/v1/tenants/"+p.tenant, nil, &tenant, 200)
	require.Equal(t, "acme-2", tenant.Name)
	p.judge(timers)
	p.counts()
}

// A run that waits for an instance when its tenant moves starts in the target as soon as
// one comes there, though a node of the source was to look after it until then.
func TestAWaitingRunMoves(t *testing.T) {
	t.Parallel()
	p := newPair(t, databases["sqlite"], databases["mysql"])
	p.from.token, p.to.token = p.key, p.key
	var made struct{ ID, Secret string }
	p.from.do(http.MethodPost, "/api/v1/executors", map[string]any{"name": "late"}, &made, 201)
	p.from.do(http.MethodPost, "/api/v1/executors/"+made.ID+"/join-tokens", map[string]any{"name": "late"}, &made, 201)
	run := p.from.runNow(p.from.newJob("late", "report", nil), nil)
	waits := func() string {
		var reason string
		require.NoError(t, p.open(0).QueryRowContext(t.Context(), "SELECT reason FROM executions WHERE id = ?", run).Scan(&reason))
		return reason
	}
	p.from.eventually(func() bool { return waits() == string(domain.ReasonWaitInstance) }, func() string { return "its row says: " + waits() })
	_, err := p.move(func(*admin.MoveTenantOptions) {})
	require.NoError(t, err)
	ex, err := executor.New(executor.Config{
		Name: "late", Addresses: []string{p.to.admin.ExecutorAddress()}, Token: executor.Secret(made.Secret), JournalDir: t.TempDir(),
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	})
	require.NoError(t, err)
	executor.HandleFunc(ex, "report", func(context.Context) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	p.to.eventually(func() bool { return p.reaches(p.to) }, func() string { return "the target does not serve the tenant" })
	p.to.until(run, "succeeded")
}

// A cell where no node runs takes no tenant: all of it would stand still there.
func TestATenantMovesToNodesThatRun(t *testing.T) {
	t.Parallel()
	p := newPair(t, databases["sqlite"], databases["sqlite"])
	p.to.stop()
	for _, dry := range []bool{true, false} {
		_, err := p.move(func(o *admin.MoveTenantOptions) { o.DryRun = dry })
		require.ErrorContains(t, err, "no node of the cell")
	}
	require.True(t, p.reaches(p.from))
}
