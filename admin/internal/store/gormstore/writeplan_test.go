package gormstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// written collects the statements of a form, such as those that change a big table.
type written struct {
	form       *regexp.Regexp
	mu         sync.Mutex
	statements []statement // guarded by mu
}

func (w *written) all() []statement {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.statements)
}

type statement struct {
	text string
	args []any
}

type writtenPool struct {
	driver.Connector
	w *written
}

func (p writtenPool) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &writtenConn{conn.(fullConn), p.w}, nil
}

// fullConn is what the drivers' connections can do of what database/sql uses.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type writtenConn struct {
	fullConn
	w *written
}

var bigWrite = regexp.MustCompile(`(?s)^(UPDATE|DELETE).*\b(executions|triggers|job_slots|timers|timer_labels)\b`)

func (c *writtenConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.note(query, args)
	return c.fullConn.ExecContext(ctx, query, args)
}

func (c *writtenConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.note(query, args)
	return c.fullConn.QueryContext(ctx, query, args)
}

func (c *writtenConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.note(query, make([]driver.NamedValue, strings.Count(query, "?")))
	return c.fullConn.PrepareContext(ctx, query)
}

func (c *writtenConn) note(query string, args []driver.NamedValue) {
	if !c.w.form.MatchString(query) {
		return
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	s := statement{text: query}
	for _, a := range args {
		s.args = append(s.args, a.Value)
	}
	c.w.statements = append(c.w.statements, s)
}

// Whatever is written to a big table finds its rows by a unique key: another
// index would be read, and on MySQL locked, for all rows of the tenant.
func TestWritesUseAUniqueKey(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			require.NoError(t, Migrate(t.Context(), o))
			w := &written{form: bigWrite}
			o.Connector = func(c driver.Connector) driver.Connector { return writtenPool{c, w} }
			s := openStore(t, o)
			live(t, newWorld(t, s, 40, domain.BlockSerial))
			seen := map[string]bool{}
			for _, st := range w.all() {
				table := bigWrite.FindStringSubmatch(st.text)
				seen[table[1]+" "+table[2]] = true
				for _, way := range ways(t, s, st) {
					require.Contains(t, []string{"PRIMARY", "INTEGER PRIMARY KEY", "uq_executions_occurrence"}, way, st.text)
				}
			}
			require.Equal(t, map[string]bool{"UPDATE triggers": true, "UPDATE executions": true, "UPDATE job_slots": true, "DELETE executions": true}, seen)
		})
	}
}

// live takes runs through all that is written to them, on belief and not, and
// takes the fires planned ahead back.
func live(t *testing.T, w *world) {
	t.Helper()
	ctx := t.Context()
	for _, believed := range []bool{true, false} {
		planned := w.plan(1)
		if !believed {
			w.s.Rows.Entries.Purge()
		}
		offered, err := w.s.OfferExecutions(ctx, w.offers(planned))
		require.NoError(t, err)
		granted, err := w.s.GrantOffers(ctx, w.grants(offered))
		require.NoError(t, err)
		_, err = w.s.FinishAttempts(ctx, w.reports(granted))
		require.NoError(t, err)
	}
	ahead := w.planOne(timeOf(t, w.s), domain.Trigger{JobID: w.jobs[0], TenantID: w.tenant, Executor: w.executor, Revision: 1,
		Partition: domain.PartitionOf(w.jobs[0]), NextFireAt: timeOf(t, w.s).AddDate(0, 0, 1)}, nil).Executions
	require.NoError(t, benchdata.LoadExecutions(ctx, w.s.DB, ahead))
	_, err := w.s.SetJobState(ctx, store.SetJobStateParams{Tenant: w.tenant, ID: w.jobs[0], State: domain.JobPaused})
	require.NoError(t, err)
}

// ways are the indexes through which a statement reaches the big tables.
func ways(t *testing.T, s *Store, st statement) (out []string) {
	t.Helper()
	explain := explainTable
	if s.Dialect.Name() == "sqlite" {
		explain = "EXPLAIN QUERY PLAN "
	}
	err := db.Query(t.Context(), s.Write, func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		values := make([]sql.NullString, len(columns))
		row := map[string]*sql.NullString{}
		targets := make([]any, len(columns))
		for i, c := range columns {
			targets[i], row[c] = &values[i], &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		switch detail := row["detail"]; {
		case detail == nil && row["table"].String != "j": // j is the JSON
			out = append(out, row["key"].String)
		case detail != nil && !strings.HasPrefix(detail.String, "LIST SUBQUERY"):
			_, using, _ := strings.Cut(detail.String, " USING ")
			using, _, _ = strings.Cut(using, " (")
			out = append(out, strings.TrimPrefix(using, "INDEX "))
		}
		return nil
	}, explain+st.text, st.args...)
	require.NoError(t, err, st.text)
	return out
}

func timeOf(t *testing.T, s *Store) (now time.Time) {
	t.Helper()
	now, err := s.Now(t.Context())
	require.NoError(t, err)
	return now
}
