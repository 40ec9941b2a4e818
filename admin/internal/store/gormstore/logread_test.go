package gormstore

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// interloper lets something happen between the statements of a reader.
type interloper struct {
	db.Querier
	between func()
}

func (i interloper) QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	rows, err := i.Querier.QueryContext(ctx, statement, args...)
	if err == nil {
		i.between()
	}
	return rows, err
}

// Who follows a log, or reads it backwards, has every line of what there was,
// though appends put chunks together between any two statements of his.
func TestALogIsReadWhileItGrows(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			w := newLogWorld(t, options(t))
			last := int64(0)
			grow := func() {
				if last < 600 {
					w.say(1, last+1, last+1, "a line")
					last++
				}
			}
			w.s.InSnapshot = func(ctx context.Context, fn func(db.Querier) error) error {
				return w.s.Snapshot(ctx, func(q db.Querier) error { return fn(interloper{q, grow}) })
			}
			contiguous := func(lines []domain.LogLine, from int64) {
				t.Helper()
				for i, l := range lines {
					require.Equal(t, from+int64(i), l.Number)
				}
			}
			grow()
			for after := int64(0); after < 600; {
				page := w.read(store.ReadLogParams{After: after})
				contiguous(page.Lines, after+1)
				require.Equal(t, after+int64(len(page.Lines)), page.Reached, "nothing is skipped")
				require.Greater(t, page.Reached, after)
				after = page.Reached
				page = w.read(store.ReadLogParams{Before: after + 1})
				require.Len(t, page.Lines, int(after))
				contiguous(page.Lines, 1)
			}
		})
	}
}
