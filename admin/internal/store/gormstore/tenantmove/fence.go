package tenantmove

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// What makes sure that nothing of the tenant starts or runs in the source.

// quiet waits until nothing of the tenant runs, under maintenance.
func (m *Move) quiet(ctx context.Context) error {
	began := time.Now()
	err := m.From.RunRepeatableAt(ctx, "begin maintenance", func(t *db.Tx, now time.Time) error {
		found := false
		if err := db.Query(t.Ctx, t.Conn, func(*sql.Rows) error { found = true; return nil }, "SELECT id FROM maintenance WHERE id = ?", m.maintenance()); err != nil || found {
			return err
		}
		_, err := t.Exec(t.Ctx, "INSERT INTO maintenance (id, tenant_id, executor_id, mode, reason, created_by, since, ends_at, ended_by) VALUES (?, ?, 0, 'wait', ?, 'carillon tenant move', ?, ?, '')",
			m.maintenance(), m.id, "the tenant moves to the cell "+m.Cell, now.UnixMilli(), never)
		return err
	})
	if err != nil {
		return err
	}
	if err := wait(ctx, heardIn); err != nil {
		return err
	}
	err = m.untilQuiet(ctx)
	m.report.Quiet = time.Since(began)
	return err
}

// untilQuiet waits until nothing of the tenant is under way.
func (m *Move) untilQuiet(ctx context.Context) error {
	for until := time.Now().Add(m.Wait); ; {
		what, err := m.underWay(ctx)
		if err != nil || what == "" {
			return err
		}
		if time.Now().After(until) {
			return domain.Errorf(domain.CodeWaitTimedOut, "%s after %s; wait longer (--wait), or end them. The tenant starts nothing meanwhile: go on with the same command, or end the move with --abort", what, m.Wait)
		}
		if err := wait(ctx, look); err != nil {
			return err
		}
	}
}

// maintenance is the id of the move's own, which does not move.
func (m *Move) maintenance() int64 { return -m.id }

func (m *Move) endMaintenance(ctx context.Context, s *db.DB) error {
	return s.RunRepeatable(ctx, "end maintenance", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "DELETE FROM maintenance WHERE id = ?", m.maintenance())
		return err
	})
}

// underWay says what has to end before the tenant can be fenced; empty: nothing.
func (m *Move) underWay(ctx context.Context) (what string, err error) {
	type question struct{ query, what string }
	all := []question{
		{fmt.Sprintf("SELECT COUNT(*) FROM executions WHERE tenant_id = ? AND phase IN (%s) AND (state IN (%d, %d, %d) OR lingers = 1)", alivePhases, domain.Offered, domain.Running, domain.Cancelling), "%d runs are with executors"},
	}
	for _, t := range m.From.Tables {
		if t.Claimed != "" {
			all = append(all, question{"SELECT COUNT(*) FROM " + t.Name + " WHERE tenant_id = ?" + t.Only.And() + " AND " + t.Claimed + " <> ''", t.Busy})
		}
	}
	for _, look := range all {
		var n int64
		err := m.From.LookRows(ctx, "look what is under way", func(rows *sql.Rows) error { return rows.Scan(&n) }, look.query, m.id)
		if err != nil {
			return "", err
		}
		if n > 0 {
			return fmt.Sprintf(look.what, n), nil
		}
	}
	return m.unread(ctx)
}

// unread says what the outbox has of the tenant for readers that act upon it. All tenants
// share its rows, which do not move.
func (m *Move) unread(ctx context.Context) (what string, err error) {
	n, err := countOutbox(ctx, m, domain.TopicCallbacks, func(c *domain.Callback) domain.TenantID { return c.Tenant })
	if err != nil || n > 0 {
		return fmt.Sprintf("%d callbacks are not started", n), err
	}
	n, err = countOutbox(ctx, m, domain.TopicEvents, func(e *domain.AlertEvent) domain.TenantID { return e.TenantID })
	if err != nil || n > 0 {
		return fmt.Sprintf("%d events are not read", n), err
	}
	return "", nil
}

// countOutbox counts what a topic has of the tenant.
func countOutbox[T domain.Callback | domain.AlertEvent](ctx context.Context, m *Move, topic domain.Topic, of func(*T) domain.TenantID) (n int, err error) {
	for last, more := int64(math.MinInt64), true; more && err == nil; {
		err = m.From.Look(ctx, "look into the outbox", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
			found := 0
			next, err := db.ReadOutbox(ctx, q, m.From.Dialect, topic, last, 1000, func(_ int64, body []byte) error {
				list, err := domain.DecodeList[T](body)
				for i := range list {
					if of(&list[i]) == domain.TenantID(m.id) {
						found++
					}
				}
				return err
			})
			if err == nil {
				n, last, more = n+found, next, next != 0
			}
			return err
		})
	}
	return n, err
}

// alivePhases are those of runs that have not ended, or linger (record.PhaseOf).
var alivePhases = func() string {
	var all []string
	for _, more := range []int{0, 32, 64, 96} {
		for _, phase := range []int{0, 1, 2} {
			all = append(all, fmt.Sprint(phase+more))
		}
	}
	return strings.Join(all, ",")
}()

// fence makes sure that nothing of the tenant starts in the source, whatever nodes
// believe.
func (m *Move) fence(ctx context.Context) error {
	if err := m.set(ctx, m.From, domain.TenantMoving, m.Cell, domain.TenantEnabled); err != nil {
		return err
	}
	if err := wait(ctx, heardIn); err != nil { // for an answer to each client; what follows does not need it
		return err
	}
	return m.park(ctx)
}

// park fences what is not fenced yet.
func (m *Move) park(ctx context.Context) error {
	err := m.each(ctx, m.From, "SELECT job_id FROM triggers WHERE tenant_id = ?", []any{m.id},
		fmt.Sprintf("UPDATE triggers SET tenant_id = -tenant_id, next_fire_at = next_fire_at + %d WHERE tenant_id > 0 AND job_id IN", parkBy))
	if err != nil {
		return err
	}
	for name, p := range m.parked {
		if name == "triggers" {
			continue
		}
		where, set := "tenant_id = ? AND "+p.column+fmt.Sprintf(" < %d", parkBy), p.column+" = "+p.column+fmt.Sprintf(" + %d", parkBy)
		where += p.only.And()
		if name == runs {
			where += " AND phase IN (" + alivePhases + ")"
			set += ", version = version + 1"
		}
		if err := m.each(ctx, m.From, "SELECT id FROM "+name+" WHERE "+where, []any{m.id}, "UPDATE "+name+" SET "+set+" WHERE "+p.column+fmt.Sprintf(" < %d AND id IN", parkBy)); err != nil {
			return err
		}
	}
	return nil
}

// unpark lets clocks wake again what park has put off.
func (m *Move) unpark(ctx context.Context, s *db.DB) error {
	now := time.Now().UnixMilli()
	for name, p := range m.parked {
		if name == "triggers" {
			continue
		}
		set := p.column + " = " + p.column + fmt.Sprintf(" - %d", parkBy)
		if name == runs { // nobody here attends to those that a node of the source did
			set = fmt.Sprintf("version = version + 1, wake_at = CASE WHEN reason IN ('%s', '%s') AND wake_at - %d > %d THEN %[4]d ELSE wake_at - %[3]d END",
				domain.ReasonMaintenance, domain.ReasonWaitInstance, parkBy, now)
		}
		where := p.column + fmt.Sprintf(" >= %d", parkBy)
		if err := m.each(ctx, s, "SELECT id FROM "+name+" WHERE tenant_id = ? AND "+where, []any{m.id}, "UPDATE "+name+" SET "+set+" WHERE "+where+" AND id IN"); err != nil {
			return err
		}
	}
	return m.each(ctx, s, "SELECT job_id FROM triggers WHERE tenant_id = ?", []any{-m.id},
		fmt.Sprintf("UPDATE triggers SET tenant_id = -tenant_id, next_fire_at = next_fire_at - %d WHERE tenant_id < 0 AND job_id IN", parkBy))
}

// each finds keys once, and changes their rows in transactions of a bounded number.
func (m *Move) each(ctx context.Context, s *db.DB, find string, args []any, change string) error {
	keys, err := m.keys(ctx, s, find, args...)
	if err != nil {
		return err
	}
	for len(keys) > 0 {
		n := min(len(keys), 1000)
		list := db.IDList(keys[:n])
		err := s.RunRepeatable(ctx, "move tenant", func(t *db.Tx) error {
			_, err := t.Exec(t.Ctx, change+" ("+list+")")
			return err
		})
		if err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
