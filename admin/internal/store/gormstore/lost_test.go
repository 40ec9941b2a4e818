package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// instancePlans explains each statement about instances before it runs it.
type instancePlans struct {
	*explainer
	lists []string // the plan of each statement, as text
}

func (p *instancePlans) QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	if strings.Contains(statement, "FROM instances") {
		p.explain(ctx, statement, args...)
		p.lists = append(p.lists, p.text(ctx, statement, args...))
	}
	return p.s.Read.QueryContext(ctx, statement, args...)
}

func (p *instancePlans) text(ctx context.Context, statement string, args ...any) string {
	before := explainTable
	if p.s.Dialect.Name() == "sqlite" {
		before = "EXPLAIN QUERY PLAN "
	}
	var b strings.Builder
	err := db.Query(ctx, p.s.Read, func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		values, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		err = rows.Scan(targets...)
		for _, v := range values {
			b.WriteString(v.String + " ")
		}
		b.WriteByte('\n')
		return err
	}, before+statement, args...)
	require.NoError(p.t, err)
	return b.String()
}

// TestLostInstancesAreFoundByTheirNames: the time that many lost instances of one executor
// take grows with their number, and not with its square.
func TestLostInstancesAreFoundByTheirNames(t *testing.T) {
	const lost, together = 10_000, 500
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 1, domain.BlockParallel)
			now := time.Now().UnixMilli()
			for first := 0; first < lost; first += together {
				var args []any
				for i := first; i < first+together; i++ {
					id := w.ids.Next()
					args = append(args, id, int64(w.tenant), int64(w.executor), fmt.Sprint("boot ", id), fmt.Sprint("name ", i), now-2*domain.LostFor.Milliseconds()+int64(i), domain.LeaseRanOut)
				}
				_, err := s.Write.ExecContext(t.Context(), "INSERT INTO instances (id, tenant_id, executor_id, boot_id, name, gone_at, gone_reason) VALUES "+
					strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?),", together), ","), args...)
				require.NoError(t, err)
			}
			if name == "mysql" {
				_, err := s.Write.ExecContext(t.Context(), "ANALYZE TABLE instances")
				require.NoError(t, err)
			}
			start := time.Now()
			list, err := s.ListLostInstances(t.Context())
			t.Logf("%d lost instances were looked at in %s", lost, time.Since(start).Round(time.Millisecond))
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Len(t, list[0].Lost, 1000)

			p := &instancePlans{explainer: &explainer{t: t, s: s, tables: map[string]bool{"i": true, "s": true, "instances": true}}}
			s.Lookup = p
			_, err = s.ListLostInstances(t.Context())
			require.NoError(t, err)
			require.Len(t, p.lists, 2)
			require.Regexp(t, `SEARCH s USING COVERING INDEX ix_instances_name \(executor_id=\? AND name=\? AND id>\?\)|s +ref ix_instances_name ix_instances_name `, p.lists[0])
		})
	}
}
