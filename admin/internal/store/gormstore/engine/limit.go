package engine

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Kinds of limits, as stored.
const (
	kindTenant   = 1
	KindExecutor = 2
)

// limitCache is what this node knows of the limits.
type limitCache struct {
	snapshot[map[domain.LimitKey]bool]
}

// load returns the keys of all limits, as of run.LimitsFor ago at most.
func (c *limitCache) load(ctx context.Context, q db.Querier) (map[domain.LimitKey]bool, error) {
	return c.snapshot.load(run.LimitsFor, func() (map[domain.LimitKey]bool, error) {
		keys, err := selectKeys(ctx, q, "SELECT subject_id, kind, tenant_id FROM limits")
		if err != nil {
			return nil, fmt.Errorf("read limits: %w", err)
		}
		known := make(map[domain.LimitKey]bool, len(keys))
		for _, key := range keys {
			known[key] = true
		}
		return known, nil
	})
}

// ForgetLimits makes the next look read which limits there are: one has changed.
func (s *Admission) ForgetLimits() { s.limits.forget() }

// LimitsOn implements store.Limits.
func (s *Admission) LimitsOn(tenant domain.TenantID, executor domain.ExecutorID) []domain.LimitKey {
	return run.LimitsOn(s.limits.last(), tenant, executor)
}

// ScanKey reads subject_id, kind and tenant_id, and what else the row has.
func ScanKey(rows *sql.Rows, more ...any) (domain.LimitKey, error) {
	var subject, kind int64
	var key domain.LimitKey
	err := rows.Scan(append([]any{&subject, &kind, &key.Tenant}, more...)...)
	if kind == KindExecutor {
		key.Executor = domain.ExecutorID(subject)
	}
	return key, err
}

func selectKeys(ctx context.Context, q db.Querier, statement string) (keys []domain.LimitKey, err error) {
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		key, err := ScanKey(rows)
		keys = append(keys, key)
		return err
	}, statement)
	return keys, err
}

// SubjectOf returns how a key is stored.
func SubjectOf(k domain.LimitKey) (subject, kind int64) {
	if k.Executor != 0 {
		return int64(k.Executor), KindExecutor
	}
	return int64(k.Tenant), kindTenant
}

// where is the condition for rows of a limit; prefix is "" or "alias.".
func where(subject, kind int64, prefix string) string {
	return fmt.Sprintf("%[1]ssubject_id = %[2]d AND %[1]skind = %[3]d", prefix, subject, kind)
}

// WhereLimit is the condition that finds a limit's row; prefix names its table.
func WhereLimit(l *run.Limit, prefix string) string {
	subject, kind := SubjectOf(l.Key)
	return where(subject, kind, prefix)
}

// LockLimits locks the rows of limits in the order of their keys; those that do
// not exist are missing in the answer. Slots are locked before, executions
// after.
func LockLimits(t *db.Tx, keys []domain.LimitKey, skipLocked bool) (map[domain.LimitKey]*run.Limit, error) {
	limits := make(map[domain.LimitKey]*run.Limit, len(keys))
	if len(keys) == 0 {
		return limits, nil
	}
	var terms []string
	for _, k := range keys {
		subject, kind := SubjectOf(k)
		terms = append(terms, "("+where(subject, kind, "")+")")
	}
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		l := run.NewLimit(domain.LimitKey{})
		key, err := ScanKey(rows, &l.Capacity, db.At(&l.ChangedAt))
		l.Key, limits[key] = key, l
		return err
	}, "SELECT subject_id, kind, tenant_id, capacity, changed_at FROM limits"+t.Dialect.ByPrimary()+
		" WHERE "+strings.Join(terms, " OR ")+" ORDER BY subject_id, kind"+lockOf(t, skipLocked))
	if err != nil {
		return nil, fmt.Errorf("lock limits: %w", err)
	}
	for _, l := range limits {
		if err := countHolders(t, l); err != nil {
			return nil, fmt.Errorf("count holders: %w", err)
		}
	}
	return limits, nil
}

// countHolders looks which holders are on an instance. What another transaction ends
// at this moment still counts, so it never counts too few.
func countHolders(t *db.Tx, l *run.Limit) error {
	return db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		var there bool
		if err := rows.Scan(&id, &there); err != nil {
			return err
		}
		l.Count(id, there)
		return nil
	}, "SELECT h.execution_id, COALESCE("+OccupiesInstance("e.")+", 0) FROM limit_holders AS h LEFT JOIN executions AS e ON e.id = h.execution_id WHERE "+WhereLimit(l, "h."))
}

// LoadPlaces reads the first n places of the queue.
func LoadPlaces(t *db.Tx, l *run.Limit, n int64) error {
	if n <= 0 {
		return nil
	}
	var err error
	l.Queue, err = selectPlaces(t, fmt.Sprintf("%s ORDER BY subject_id, kind, precedence, execution_id LIMIT %d", WhereLimit(l, ""), n))
	return err
}

func selectPlaces(t *db.Tx, where string) ([]run.Place, error) {
	return db.Select(t.Ctx, t.Conn, func(p *run.Place) []any { return []any{&p.Precedence, &p.ID} }, "SELECT precedence, execution_id FROM limit_waiters WHERE "+where)
}

// loadMembers finds out which of these stand in the queue.
func loadMembers(t *db.Tx, l *run.Limit, places []run.Place) error {
	for part := range slices.Chunk(places, 200) {
		var terms []string
		for _, p := range part {
			terms = append(terms, fmt.Sprintf("(%s AND precedence = %d AND execution_id = %d)", WhereLimit(l, ""), p.Precedence, p.ID))
		}
		waiting, err := selectPlaces(t, strings.Join(terms, " OR "))
		if err != nil {
			return err
		}
		for _, p := range waiting {
			l.Waiting[p.ID] = p
		}
	}
	return nil
}

// Adopt makes holders of the runs that are on instances and were offered when
// nobody, or not everybody, knew of the limit.
func Adopt(t *db.Tx, l *run.Limit) error {
	statement, args := fmt.Sprintf("SELECT id FROM executions%s WHERE tenant_id = ? AND %s AND %s",
		t.Dialect.ByIndex("ix_executions_phase"), occupyingPhases, OccupiesInstance("")), []any{int64(l.Key.Tenant)}
	if l.Key.Executor != 0 {
		statement, args = statement+" AND executor_id = ?", append(args, int64(l.Key.Executor))
	}
	running, err := db.SelectColumn[domain.ExecutionID](t.Ctx, t.Conn, statement, args...)
	if err != nil {
		return fmt.Errorf("find running executions: %w", err)
	}
	for _, id := range running {
		l.Adopt(id)
	}
	return nil
}

// OccupiesInstance is domain.Execution.OccupiesInstance; prefix is "" or "alias.".
func OccupiesInstance(prefix string) string {
	return fmt.Sprintf("((%[1]sstate IN (%[2]d, %[3]d, %[4]d) OR %[1]slingers = 1) AND %[1]sstage IN (%[5]d, %[6]d))",
		prefix, domain.Offered, domain.Running, domain.Cancelling, domain.StageNone, domain.StageReady)
}

// occupyingPhases is where such executions are, runs and parts.
var occupyingPhases = func() string {
	var phases []int64
	for _, of := range []int64{0, record.PhaseTimer, record.PhasePart} {
		phases = append(phases, of+record.PhaseAlive, of+record.PhaseLingering)
	}
	return "phase IN (" + db.IDList(phases) + ")"
}()

// Waits is how an execution that has a place in a queue stands.
var Waits = fmt.Sprintf("state IN (%d, %d)", domain.Due, domain.RetryWait)

// limitsToLook are the limits under which somebody waits, that were taken away,
// or that have changed so lately that not all nodes may have known of it.
func (s *Admission) limitsToLook(ctx context.Context) (keys []domain.LimitKey, err error) {
	err = s.Look(ctx, "find limits", func(ctx context.Context, q db.Querier, _ *gorm.DB) (err error) {
		keys, err = selectKeys(ctx, q, "SELECT subject_id, kind, tenant_id FROM limits AS l WHERE changed_at > "+s.Dialect.ClockNow()+fmt.Sprintf(" - %d", run.LimitSettles.Milliseconds())+
			" OR capacity = 0 OR EXISTS (SELECT 1 FROM limit_waiters AS w WHERE w.subject_id = l.subject_id AND w.kind = l.kind) ORDER BY subject_id, kind")
		return err
	})
	return keys, err
}
