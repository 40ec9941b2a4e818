package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// recorder takes statements of a transaction instead of a database.
type recorder struct {
	db.Statements
	texts []string
}

func (r *recorder) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	r.texts = append(r.texts, query)
	return driver.RowsAffected(strings.Count(regexp.MustCompile(`IN \(([0-9,]*)\)`).FindStringSubmatch(query + " IN ()")[1], ",") + 1), nil
}

// Slots that are written from the cache are locked by the statement that writes them.
// Places taken and given back for several tenants are one statement along the
// primary key, not one for each kind of change in the order of a map.
func TestCachedSlotsInOrder(t *testing.T) {
	r := &recorder{}
	slots := map[domain.JobID]*run.Slot{}
	for job := domain.JobID(1); job <= 40; job++ {
		s := cachedSlot(job, domain.TenantID(job%5), int(1+job%3))
		s.Holders = int64(1 - 2*(job%2))
		slots[job] = s
	}
	tx := &db.Tx{Ctx: t.Context(), Dialect: db.SQLiteDialect{}, Conn: r}
	err := saveCachedSlots(tx, slots)
	require.Len(t, r.texts, 1)
	require.Contains(t, r.texts[0], "WHERE job_id IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40)")
	require.ErrorIs(t, err, db.ErrStale, "the recorder counts the first list, which is of one group only")
}

// Many kinds of change in one statement do what each of them says, and nothing
// when one of them does not hold.
func TestCachedSlotsMixed(t *testing.T) {
	for driver, dsn := range map[string]func() string{
		"sqlite": func() string { return filepath.Join(t.TempDir(), "c.db") }, "mysql": func() string { return testenv.Database(t) },
	} {
		t.Run(driver, func(t *testing.T) {
			o := db.Options{Driver: driver, DSN: dsn(), Logger: slog.New(slog.DiscardHandler)}
			require.NoError(t, db.Migrate(t.Context(), o))
			s, err := db.Open(o)
			require.NoError(t, err)
			defer s.Close()
			testCachedSlotsMixed(t, s)
		})
	}
}

func testCachedSlotsMixed(t *testing.T, s *db.DB) {
	write := func(slots map[domain.JobID]*run.Slot) error {
		return s.RunRepeatable(t.Context(), "write slots", func(t *db.Tx) error { return saveCachedSlots(t, slots) })
	}
	require.NoError(t, s.RunRepeatable(t.Context(), "make slots", func(tx *db.Tx) error {
		for job := range 10 {
			if _, err := tx.Exec(tx.Ctx, fmt.Sprintf("INSERT INTO job_slots (job_id, tenant_id, holders, waiters) VALUES (%d, %d, 1, 0)", job+1, job%2)); err != nil {
				return err
			}
		}
		return nil
	}))
	slots := func(limit int) map[domain.JobID]*run.Slot {
		out := map[domain.JobID]*run.Slot{}
		for job := range 10 {
			id := domain.JobID(job + 1)
			out[id] = cachedSlot(id, domain.TenantID(job%2), limit)
			out[id].Holders = int64(1 - 2*(job/5)) // five are taken, five given back
		}
		return out
	}
	holders := func() (out []int64) {
		require.NoError(t, db.Query(t.Context(), s.Read, func(rows *sql.Rows) error {
			var n int64
			err := rows.Scan(&n)
			out = append(out, n)
			return err
		}, "SELECT holders FROM job_slots ORDER BY job_id"))
		return out
	}
	require.NoError(t, write(slots(2)))
	require.Equal(t, []int64{2, 2, 2, 2, 2, 0, 0, 0, 0, 0}, holders())
	require.Error(t, s.TryOnce(t.Context(), "write slots", func(t *db.Tx) error { return saveCachedSlots(t, slots(2)) }), "they are full, and empty")
	require.Equal(t, []int64{2, 2, 2, 2, 2, 0, 0, 0, 0, 0}, holders())
}

// All attempts that a transaction archives are replaced by one statement.
func TestAttemptsTogether(t *testing.T) {
	r := &recorder{}
	b := &Batch{Tx: &db.Tx{Ctx: t.Context(), Dialect: db.SQLiteDialect{}, Conn: r}}
	var archived []*record.AttemptRow
	for i := range int64(150) {
		archived = append(archived, &record.AttemptRow{ExecutionID: 1000 - i, Fence: 1, TenantID: 7})
	}
	b.Unarchive = []run.AttemptKey{{Tenant: 7, ID: 5, Fence: 2}}
	require.NoError(t, b.deleteAttempts(archived))
	require.Len(t, r.texts, 1)
	require.True(t, strings.HasPrefix(r.texts[0], "DELETE FROM attempts WHERE (execution_id = 5 AND fence = 2 AND tenant_id = 7) OR (execution_id = 851 "), r.texts[0])
	require.Equal(t, 151, strings.Count(r.texts[0], "execution_id"))
}

// TestWhatAnEditMayDeleteIsNoWitness: a run that was only planned, or offered
// ahead of its time, may be taken back.
func TestWhatAnEditMayDeleteIsNoWitness(t *testing.T) {
	const due = 1000
	proves := func(fence, attempt, offeredAt int64) bool {
		return (&stored{after: &record.ExecutionRow{Fence: fence, Attempt: attempt, FireAt: due, OfferedAt: offeredAt}}).proves()
	}
	require.False(t, proves(0, 0, 0))
	require.False(t, proves(1, 0, due-1), "offered ahead")
	require.True(t, proves(1, 0, due))
	require.True(t, proves(1, 1, due-1), "granted")
}
