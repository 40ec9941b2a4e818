package tenantmove

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Options of New.
type Options struct {
	Order
	From, To *db.DB
	// CountEnds adds a part of the ends in the source's outbox to its statistics
	// (store.Statistics); every = 0: now.
	CountEnds func(ctx context.Context, every time.Duration) (more bool, err error)
}

// Report is what a move has done.
type Report struct {
	Tenant string `json:"tenant"`
	Cell   string `json:"cell"`
	// Rows are those that were written in the target, by table.
	Rows map[string]int64 `json:"rows"`
	// Compared is how many rows both databases have the same of, at the end.
	Compared int64 `json:"compared"`
	// Quiet is how long its runs took to end, and Pause for how long nothing of it
	// could start; both include what a former call of the same move took.
	Quiet time.Duration `json:"quiet"`
	Pause time.Duration `json:"pause"`
}

// Move moves one tenant. It is used once.
type Move struct {
	Options
	id     int64
	tables map[string]*table
	groups []group
	parked map[string]wakes
	// owners are the accounts of the target that stand for platform administrators of
	// the source, which do not move.
	owners map[int64]int64
	// settled are the runs that were copied and cannot change any more.
	settled map[int64]bool
	report  Report
	goneAt  int64 // when instances of the source count as gone
}

// How nodes hear of a change: they read maintenance at least each half second, and
// what is disabled as often.
const (
	heardIn = time.Second
	look    = 100 * time.Millisecond
	// settledAfter is when a run that has ended does not change any more: late results
	// and logs have come.
	settledAfter = time.Hour
	// nodeSilent is when a node of the target counts as gone. They renew twice a second.
	nodeSilent = 10 * time.Second
	chunk      = 200
	// rounds bounds how often the rest is copied before it has to be the same.
	rounds = 20
)

var (
	errGone = errors.New("the tenant has moved already")
	never   = domain.Never.UnixMilli()
)

// New finds the tenant, and what speaks against moving it.
func New(ctx context.Context, o Options) (*Move, error) {
	if o.Step == nil {
		o.Step = func(string) error { return nil }
	}
	m := &Move{Options: o, owners: map[int64]int64{}, settled: map[int64]bool{}, goneAt: time.Now().UnixMilli(), groups: allGroups(o.From.Tables), parked: allParked(o.From.Tables), report: Report{Tenant: o.Tenant, Cell: o.Cell, Rows: map[string]int64{}}}
	var err error
	if m.tables, err = readTables(ctx, o.From); err != nil {
		return nil, err
	}
	there, err := readTables(ctx, o.To)
	if err != nil {
		return nil, err
	}
	for name, t := range m.tables {
		child := slices.ContainsFunc(o.From.Tables, func(own db.OwnedTable) bool { return slices.Contains(own.Children, name) })
		if !t.has("tenant_id") && name != "users" && !child {
			continue
		}
		if other := there[name]; other == nil || strings.Join(other.columns, ",") != strings.Join(t.columns, ",") {
			return nil, fmt.Errorf("the table %s is not the same in both databases: bring both to one version (carillon migrate)", name)
		}
	}
	found := false
	err = o.From.LookRows(ctx, "find tenant", func(rows *sql.Rows) error { found = true; return rows.Scan(&m.id) }, "SELECT id FROM tenants WHERE name = ?", o.Tenant)
	if err == nil && !found {
		err = domain.Errorf(domain.CodeNotFound, "there is no tenant %q in the source", o.Tenant)
	}
	return m, err
}

// state reads where the tenant is.
func (m *Move) state(ctx context.Context, s *db.DB) (state domain.TenantState, cell string, err error) {
	err = s.LookRows(ctx, "read tenant", func(rows *sql.Rows) error { return rows.Scan(&state, &cell) }, "SELECT state, cell FROM tenants WHERE id = ?", m.id)
	return state, cell, err
}

// set writes where the tenant is; it has to be in one of the states before.
func (m *Move) set(ctx context.Context, s *db.DB, to domain.TenantState, cell string, before ...domain.TenantState) error {
	states := []int64{int64(to)}
	for _, b := range before {
		states = append(states, int64(b))
	}
	return s.RunRepeatableAt(ctx, "set tenant state", func(t *db.Tx, now time.Time) error {
		deleteAt := int64(0)
		if to == domain.TenantMoved {
			deleteAt = now.Add(domain.MovedTenantKept).UnixMilli()
		}
		found, err := t.Exec(t.Ctx, "UPDATE tenants SET state = ?, cell = ?, note = '', version = version + 1, changed_at = ?, delete_at = ? WHERE id = ? AND state IN ("+db.IDList(states)+")",
			int64(to), cell, now.UnixMilli(), deleteAt, m.id)
		if err == nil && found == 0 {
			err = domain.Errorf(domain.CodeConflict, "the tenant was disabled or deleted meanwhile")
		}
		return err
	})
}

// Check says whether the tenant can move. It writes nothing.
func (m *Move) Check(ctx context.Context) error {
	state, cell, err := m.state(ctx, m.From)
	if err != nil {
		return err
	}
	if err := m.leaves(state, cell); err != nil {
		return err
	}
	if state == domain.TenantDisabled || state == domain.TenantDeleted {
		return domain.Errorf(domain.CodeConflict, "the tenant %q is disabled; enable it first, and it moves with all that goes on", m.Tenant)
	}
	known := false
	err = m.From.LookRows(ctx, "find cell", func(*sql.Rows) error { known = true; return nil }, "SELECT name FROM cells WHERE name = ?", m.Cell)
	if err == nil && !known {
		err = domain.Errorf(domain.CodeNotFound, "the source knows no cell %q: carillon cell add %[1]s …", m.Cell)
	}
	if err != nil {
		return err
	}
	if err := m.sameKey(ctx); err != nil {
		return err
	}
	there, _, err := m.state(ctx, m.To)
	if err != nil {
		return err
	}
	if there == domain.TenantEnabled && state != domain.TenantMoved || there == domain.TenantDisabled || there == domain.TenantDeleted {
		return domain.Errorf(domain.CodeConflict, "the target has a tenant of this id already, which is neither on its way nor moved away")
	}
	taken := false
	err = m.To.LookRows(ctx, "find tenant", func(*sql.Rows) error { taken = true; return nil }, "SELECT id FROM tenants WHERE name = ? AND id <> ?", m.Tenant, m.id)
	if err == nil && taken {
		err = domain.Errorf(domain.CodeConflict, "the target has another tenant named %q; rename one of them (carillon tenant rename)", m.Tenant)
	}
	if err != nil {
		return err
	}
	if state == domain.TenantEnabled {
		if err := m.served(ctx); err != nil {
			return err
		}
	}
	return m.checkPeople(ctx)
}

// CanMove is Check before a first call: one that has moved cannot move again.
func (m *Move) CanMove(ctx context.Context) error {
	if err := m.Check(ctx); err != nil {
		return err
	}
	state, _, err := m.state(ctx, m.From)
	if err != nil || state != domain.TenantMoved {
		return err
	}
	there, _, err := m.state(ctx, m.To)
	if err == nil && there == domain.TenantEnabled {
		err = domain.Errorf(domain.CodeConflict, "%w", errGone)
	}
	return err
}

// leaves refuses a database that the tenant does not leave for this cell: above all the
// one that it comes to, where the command has been given with both sides exchanged.
func (m *Move) leaves(state domain.TenantState, cell string) error {
	switch {
	case state == domain.TenantMoving && cell == "":
		return domain.Errorf(domain.CodeConflict, "the tenant %q is on its way to this cell: go on with that move, or end it, by the same command as before, with the cell that it comes from as the source", m.Tenant)
	case (state == domain.TenantMoved || state == domain.TenantMoving) && cell != m.Cell:
		return domain.Errorf(domain.CodeConflict, "the tenant %q lives in the cell %q, or goes there", m.Tenant, cell)
	}
	return nil
}

// served refuses a target that no node works for: the tenant would stand still there.
func (m *Move) served(ctx context.Context) error {
	var nodes int
	err := m.To.LookRows(ctx, "count nodes", func(rows *sql.Rows) error { return rows.Scan(&nodes) },
		"SELECT COUNT(*) FROM node_states WHERE renewed_at > "+m.To.Dialect.Clock()+" - ?", nodeSilent.Milliseconds())
	if err == nil && nodes == 0 {
		err = domain.Errorf(domain.CodeConflict, "no node of the cell %q is running, and nothing of the tenant would start there: start one first", m.Cell)
	}
	return err
}

// sameKey refuses cells whose secrets do not open with one key.
func (m *Move) sameKey(ctx context.Context) error {
	here, err := m.From.ClusterValues(ctx)
	if err != nil {
		return err
	}
	there, err := m.To.ClusterValues(ctx)
	if err != nil {
		return err
	}
	const value = "sealing_key_fingerprint"
	if here[value] == "" || here[value] != there[value] {
		return domain.Errorf(domain.CodeConflict, "the cells have different sealing keys (fingerprints %s and %s): secrets of the tenant would not open; start a new cell with a copy of sealing.key", here[value], there[value])
	}
	if here["cluster_id"] == there["cluster_id"] {
		return domain.Errorf(domain.CodeConflict, "both are the same cluster (%s)", here["cluster_id"])
	}
	return nil
}

// Run moves the tenant, or goes on with that.
func (m *Move) Run(ctx context.Context) (Report, error) {
	state, _, err := m.state(ctx, m.From)
	if err != nil {
		return m.report, err
	}
	if state != domain.TenantMoved {
		if err := m.leave(ctx, state); err != nil {
			return m.report, err
		}
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"take up", m.takeUp}, {"enable", m.enable}} {
		if err := m.step(ctx, step.name, step.do); err != nil {
			return m.report, err
		}
	}
	return m.report, nil
}

func (m *Move) step(ctx context.Context, name string, do func(context.Context) error) error {
	if err := m.Step(name); err != nil {
		return err
	}
	m.Logger.Info("step of the move", "step", name, "tenant", m.Tenant)
	began := time.Now()
	err := do(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	m.Logger.Info("step of the move done", "step", name, "tenant", m.Tenant, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// leave is all until the source says that the tenant lives elsewhere.
func (m *Move) leave(ctx context.Context, state domain.TenantState) error {
	steps := []struct {
		name string
		do   func(context.Context) error
	}{{"announce", m.announce}, {"copy what has settled", m.copySettled}, {"copy what came meanwhile", m.copySettled}, {"wait for runs", m.quiet}, {"fence", m.fence}, {"copy the rest", m.copyRest}, {"leave", m.left}}
	if state == domain.TenantMoving { // it starts nothing already
		steps = append(steps[:1], steps[3:]...)
	}
	for _, step := range steps {
		if err := m.step(ctx, step.name, step.do); err != nil {
			return err
		}
	}
	return nil
}

// announce makes the tenant known in the target, where it starts nothing.
func (m *Move) announce(ctx context.Context) error {
	there, _, err := m.state(ctx, m.To)
	if err != nil {
		return err
	}
	err = m.To.RunRepeatableAt(ctx, "announce tenant", func(t *db.Tx, now time.Time) (err error) {
		if there != 0 { // it lived there before, or this move has begun before
			_, err = t.Exec(t.Ctx, "UPDATE tenants SET name = ?, state = ?, note = CASE WHEN cell = '' THEN note ELSE cell END, cell = '', version = version + 1, changed_at = ?, delete_at = 0 WHERE id = ? AND state IN ("+db.IDList([]int64{int64(domain.TenantMoving), int64(domain.TenantMoved)})+")",
				m.Tenant, int64(domain.TenantMoving), now.UnixMilli(), m.id)
			return err
		}
		_, err = t.Exec(t.Ctx, "INSERT INTO tenants (id, name, state, note, version, created_at, changed_at, delete_at, cell) VALUES (?, ?, ?, '', 1, ?, ?, 0, '')",
			m.id, m.Tenant, int64(domain.TenantMoving), now.UnixMilli(), now.UnixMilli())
		return err
	})
	if err != nil {
		return err
	}
	if err := m.people(ctx); err != nil {
		return err
	}
	// That of an earlier move, away from there.
	if err := m.endMaintenance(ctx, m.To); err != nil {
		return err
	}
	return wait(ctx, heardIn) // all nodes of the target know it before anything of it comes
}

func (m *Move) keys(ctx context.Context, s *db.DB, query string, args ...any) (keys []int64, err error) {
	keys, err = db.SelectColumn[int64](ctx, s.Lookup, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}

// left is the point of no return: from here on the tenant is the target's.
func (m *Move) left(ctx context.Context) error {
	return m.set(ctx, m.From, domain.TenantMoved, m.Cell, domain.TenantMoving)
}

func (m *Move) takeUp(ctx context.Context) error { return m.unpark(ctx, m.To) }

// enable gives the tenant to the nodes of the target. Of a pause that was longer than
// fire times may be late, they are told as of a maintenance that is over: of what
// passed, one run of each schedule stands for all, instead of none.
func (m *Move) enable(ctx context.Context) error {
	there, _, err := m.state(ctx, m.To)
	if err != nil || there == domain.TenantEnabled {
		return err
	}
	var since, until int64
	err = m.From.LookRows(ctx, "read the pause", func(rows *sql.Rows) error { return rows.Scan(&since, &until) },
		"SELECT since, "+m.From.Dialect.Clock()+" FROM maintenance WHERE id = ?", m.maintenance())
	if err != nil {
		return err
	}
	m.report.Pause = time.Duration(until-since) * time.Millisecond
	if since > 0 && m.report.Pause >= domain.DefaultMisfireThreshold-heardIn {
		if err := m.tellPause(ctx, since); err != nil {
			return err
		}
	}
	return m.set(ctx, m.To, domain.TenantEnabled, "", domain.TenantMoving)
}

func (m *Move) tellPause(ctx context.Context, since int64) error {
	return m.To.RunRepeatableAt(ctx, "tell the pause", func(t *db.Tx, now time.Time) error {
		if _, err := t.Exec(t.Ctx, "DELETE FROM maintenance WHERE id = ?", m.id); err != nil { // of an earlier move
			return err
		}
		_, err := t.Exec(t.Ctx, "INSERT INTO maintenance (id, tenant_id, executor_id, mode, reason, created_by, since, ends_at, ended_by) VALUES (?, ?, 0, 'wait', 'the tenant moved to this cell', 'carillon tenant move', ?, ?, 'carillon tenant move')",
			m.id, m.id, since, now.UnixMilli())
		return err
	})
}

// Abort lets the tenant stay in the source. It is refused once the tenant is the
// target's.
func (m *Move) Abort(ctx context.Context, purge func(context.Context, domain.TenantID, int) (int64, error)) error {
	state, cell, err := m.state(ctx, m.From)
	if err != nil {
		return err
	}
	if state == domain.TenantMoved {
		return domain.Errorf(domain.CodeConflict, "%w; move it back instead", errGone)
	}
	if err := m.leaves(state, cell); err != nil {
		return err
	}
	there, _, err := m.state(ctx, m.To)
	if err != nil {
		return err
	}
	switch {
	case there == domain.TenantEnabled:
		return domain.Errorf(domain.CodeConflict, "the target has the tenant enabled")
	case state != domain.TenantMoving && there != domain.TenantMoving:
		return domain.Errorf(domain.CodeConflict, "no move of the tenant %q to the cell %q has begun", m.Tenant, m.Cell)
	}
	if err := m.unpark(ctx, m.From); err != nil {
		return err
	}
	if err := m.set(ctx, m.From, domain.TenantEnabled, "", domain.TenantMoving); err != nil {
		return err
	}
	if err := m.endMaintenance(ctx, m.From); err != nil || there != domain.TenantMoving {
		return err
	}
	if again, err := m.signpost(ctx); err != nil || again {
		return err
	}
	for {
		n, err := purge(ctx, domain.TenantID(m.id), 2000)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	return m.To.RunRepeatable(ctx, "forget tenant", func(t *db.Tx) error {
		for _, table := range []string{"api_keys", "join_token_boots", "join_tokens", "memberships"} {
			if _, err := t.Exec(t.Ctx, "DELETE FROM "+table+" WHERE tenant_id = ?", m.id); err != nil {
				return err
			}
		}
		_, err := t.Exec(t.Ctx, "DELETE FROM tenants WHERE id = ? AND state = ?", m.id, int64(domain.TenantMoving))
		return err
	})
}

// signpost lets a target where the tenant lived before lead away from there again, as it
// did before this move. Its rows go later, as after each move.
func (m *Move) signpost(ctx context.Context) (again bool, err error) {
	var former string
	err = m.To.LookRows(ctx, "find former cell", func(rows *sql.Rows) error { return rows.Scan(&former) }, "SELECT note FROM tenants WHERE id = ?", m.id)
	if err != nil || former == "" {
		return false, err
	}
	return true, m.set(ctx, m.To, domain.TenantMoved, former, domain.TenantMoving)
}

func wait(ctx context.Context, d time.Duration) error {
	if !db.Sleep(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}
