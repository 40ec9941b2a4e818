package tenantmove

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// scope is what of the tables is copied.
type scope struct {
	late bool // all that has not settled; else only what is not late
	// compared and written count rows, and tables those that were written; nil: nobody asks.
	compared, written int64
	tables            map[string]int64
}

// copySettled copies what nodes of the target do not act upon, while the tenant goes on.
func (m *Move) copySettled(ctx context.Context) error { return m.copy(ctx, &scope{}) }

// copyRest copies all that has not settled until a comparison finds nothing to do.
func (m *Move) copyRest(ctx context.Context) error {
	var last map[string]int64
	for round := range rounds {
		// What nodes had begun before they heard of the move comes to an end.
		if err := wait(ctx, time.Duration(max(0, round-1))*look); err != nil {
			return err
		}
		if err := m.untilQuiet(ctx); err != nil { // somebody may have started a run by hand, which maintenance allows
			return err
		}
		if err := m.park(ctx); err != nil {
			return err
		}
		if err := m.countEnds(ctx); err != nil {
			return err
		}
		s := &scope{late: true, tables: map[string]int64{}}
		if err := m.copy(ctx, s); err != nil {
			return err
		}
		last = s.tables
		if m.report.Compared = s.compared; s.written == 0 {
			return nil
		}
	}
	return domain.Errorf(domain.CodeConflict, "the source still changes after %d rounds; rows of the last one: %v", rounds, last)
}

// countEnds adds to the statistics what the tenant's runs have left in the outbox, which
// all tenants share and which stays: nothing of this one ends any more.
func (m *Move) countEnds(ctx context.Context) error {
	var last int64
	err := m.From.LookRows(ctx, "look into the outbox", func(rows *sql.Rows) error { return rows.Scan(&last) }, fmt.Sprintf("SELECT COALESCE(MAX(id), 0) FROM outbox WHERE topic = %d", domain.TopicEnds))
	if err != nil {
		return err
	}
	for {
		waiting := false
		err := m.From.LookRows(ctx, "look into the outbox", func(rows *sql.Rows) error { return rows.Scan(&waiting) },
			fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM outbox WHERE topic = %d AND id <= %d)", domain.TopicEnds, last))
		if err != nil || !waiting {
			return err
		}
		if _, err := m.CountEnds(ctx, 0); err != nil {
			return err
		}
	}
}

func (m *Move) copy(ctx context.Context, s *scope) error {
	for i := range m.groups {
		g := &m.groups[i]
		if g.late && !s.late {
			continue
		}
		var err error
		switch {
		case g.key == "":
			err = m.pages(ctx, s, m.tables[g.table], "tenant_id", m.id)
		default:
			err = m.parents(ctx, s, g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parents copies rows that are listed by key, and their children.
func (m *Move) parents(ctx context.Context, s *scope, g *group) error {
	index := func(d db.Dialect) string {
		if g.index == "" {
			return ""
		}
		return d.ByIndex(g.index)
	}
	list := "SELECT DISTINCT " + g.key + " FROM " + g.table + "%s WHERE tenant_id = ?"
	here, err := m.keys(ctx, m.From, fmt.Sprintf(list, index(m.From.Dialect)), m.id)
	if err != nil {
		return err
	}
	there, err := m.keys(ctx, m.To, fmt.Sprintf(list, index(m.To.Dialect)), m.id)
	if err != nil {
		return err
	}
	keys := append(here, there...)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if g.table == runs {
		keys = slices.DeleteFunc(keys, func(id int64) bool { return m.settled[id] })
		if !s.late {
			if keys, err = m.settling(ctx, keys); err != nil {
				return err
			}
		}
	}
	if g.table == "maintenance" {
		keys = slices.DeleteFunc(keys, func(id int64) bool { return id == m.maintenance() })
	}
	for part := range slices.Chunk(keys, chunk) {
		in := " IN (" + db.IDList(part) + ")"
		if err := m.same(ctx, s, m.tables[g.table], "tenant_id IN (?, ?) AND "+g.key+in, m.id, -m.id); err != nil {
			return err
		}
		for _, c := range g.children {
			t := m.tables[c.table]
			switch {
			case c.late && !s.late:
			case c.page != "":
				for _, parent := range part {
					if err := m.paged(ctx, s, t, c.column, c.page, parent); err != nil {
						return err
					}
				}
			case t.has("tenant_id"):
				err = m.same(ctx, s, t, "tenant_id IN (?, ?) AND "+c.column+in, m.id, -m.id)
			default:
				err = m.same(ctx, s, t, c.column+in)
			}
			if err != nil {
				return err
			}
		}
		if g.table == runs && !s.late {
			for _, id := range part {
				m.settled[id] = true
			}
		}
	}
	return nil
}

// settling are those of the runs that ended long ago.
func (m *Move) settling(ctx context.Context, ids []int64) (out []int64, err error) {
	for part := range slices.Chunk(ids, 5000) {
		some, err := m.keys(ctx, m.From, fmt.Sprintf("SELECT id FROM executions%s WHERE id IN (%s) AND phase NOT IN (%s) AND finished_at < ? AND returned_at < ?",
			m.From.Dialect.ByPrimary(), db.IDList(part), alivePhases), time.Now().Add(-settledAfter).UnixMilli(), time.Now().Add(-settledAfter).UnixMilli())
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// pages copies rows of one value of the first column of the primary key, in its order.
func (m *Move) pages(ctx context.Context, s *scope, t *table, column string, value int64) error {
	if t.columns[t.key[0]] != column {
		return fmt.Errorf("the primary key of %s does not begin with %s", t.name, column)
	}
	where, args := column+" = ?", []any{value}
	for {
		here, err := t.read(ctx, m.From.Lookup, where+t.order()+fmt.Sprintf(" LIMIT %d", 5*chunk), args...)
		if err != nil {
			return err
		}
		full := len(here) == 5*chunk
		until, more := "", []any(nil)
		if full {
			// the target's rows up to the last one here
			until, more = " AND NOT ("+t.beyond(here[len(here)-1])+")", t.beyondArgs(here[len(here)-1])
		}
		there, err := t.read(ctx, m.To.Lookup, where+until, append(slices.Clone(args), more...)...)
		if err != nil {
			return err
		}
		if err := m.write(ctx, s, t, here, there); err != nil || !full {
			return err
		}
		behind, values := t.after(here[len(here)-1])
		where, args = column+" = ?"+behind, append([]any{value}, values...)
	}
}

// beyond is the condition for what comes behind a row; it and its arguments are those
// of after without the bound for the index.
func (t *table) beyond(r row) string {
	text, _ := t.after(r)
	_, text, _ = strings.Cut(text, " >= ? AND ")
	return text
}

func (t *table) beyondArgs(r row) []any {
	_, args := t.after(r)
	return args[1:]
}

// paged copies the rows of one parent in the order of a column that is unique there.
func (m *Move) paged(ctx context.Context, s *scope, t *table, column, page string, parent int64) error {
	const most = 5 * chunk
	after := ""
	for {
		where, args := column+" = ? AND "+page+" > ?", []any{parent, after}
		here, err := t.read(ctx, m.From.Lookup, where+fmt.Sprintf(" ORDER BY %s LIMIT %d", page, most), args...)
		if err != nil {
			return err
		}
		full := len(here) == most
		if full {
			after = here[len(here)-1][t.at(page)].(string)
			where, args = where+" AND "+page+" <= ?", append(args, after)
		}
		there, err := t.read(ctx, m.To.Lookup, where, args...)
		if err != nil {
			return err
		}
		if err := m.write(ctx, s, t, here, there); err != nil || !full {
			return err
		}
	}
}

// same makes the rows that a condition finds the same in the target.
func (m *Move) same(ctx context.Context, s *scope, t *table, where string, args ...any) error {
	here, err := t.read(ctx, m.From.Lookup, where, args...)
	if err != nil {
		return err
	}
	there, err := t.read(ctx, m.To.Lookup, where, args...)
	if err != nil {
		return err
	}
	return m.write(ctx, s, t, here, there)
}

func (m *Move) write(ctx context.Context, s *scope, t *table, here, there []row) error {
	old := make(map[string]row, len(there))
	for _, r := range there {
		old[t.keyOf(r)] = r
	}
	var fresh, changed, gone []row
	for _, r := range here {
		m.turn(t, r)
		key := t.keyOf(r)
		before, found := old[key]
		delete(old, key)
		switch {
		case !found:
			fresh = append(fresh, r)
		case !same(before, r):
			changed = append(changed, r)
		}
	}
	for _, r := range old {
		if t.name != "instances" { // the target's nodes are instances of the built-in executor
			gone = append(gone, r)
		}
	}
	s.compared += int64(len(here))
	n := int64(len(fresh) + len(changed) + len(gone))
	if n == 0 {
		return nil
	}
	err := m.To.RunRepeatable(ctx, "copy rows of a tenant", func(tx *db.Tx) error {
		for _, r := range gone {
			if err := t.remove(tx, r); err != nil {
				return err
			}
		}
		for _, r := range changed {
			if err := t.update(tx, r); err != nil {
				return err
			}
		}
		return t.insert(tx, fresh)
	})
	if db.IsDuplicate(err) {
		return domain.Errorf(domain.CodeConflict, "%s: the target has a row with a key of the tenant that is not the tenant's (%w). Cells make the same ids if their nodes have the same numbers: give each cell its own (--node-numbers)", t.name, err)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", t.name, err)
	}
	s.written += n
	if s.tables != nil {
		s.tables[t.name] += n
	}
	m.report.Rows[t.name] += n
	return nil
}

// turn makes of a row of the source what it is in the target.
func (m *Move) turn(t *table, r row) {
	switch t.name {
	case "triggers":
		if id := t.at("tenant_id"); r[id].(int64) > 0 {
			r[id] = -r[id].(int64)
		}
	case "instances":
		if gone := t.at("gone_at"); r[gone].(int64) == 0 {
			r[gone], r[t.at("gone_reason")] = m.goneAt, "its tenant moved to this cell"
		}
	case "api_keys":
		owner := t.at("owner_id")
		if to, ok := m.owners[r[owner].(int64)]; ok {
			r[owner] = to
		}
	}
	for _, own := range m.From.Tables {
		if own.Name == t.name && own.Claimed != "" {
			r[t.at(own.Claimed)] = ""
		}
	}
	p, ok := m.parked[t.name]
	if !ok || p.only.Column != "" && r[t.at(p.only.Column)].(int64) != p.only.Value {
		return
	}
	i := t.at(p.column)
	if at, isSet := r[i].(int64); isSet && at < parkBy {
		r[i] = at + parkBy
	}
}

// checkPeople says whether the tenant's accounts can be accounts of the target.
func (m *Move) checkPeople(ctx context.Context) error {
	_, err := m.members(ctx)
	return err
}

// members are the accounts that go with the tenant: rows of users with the role.
func (m *Move) members(ctx context.Context) (list map[int64]string, err error) {
	type account struct {
		id    int64
		name  string
		admin bool
		role  string
	}
	var all []account
	err = m.From.LookRows(ctx, "list members", func(rows *sql.Rows) error {
		var a account
		err := rows.Scan(&a.id, &a.name, &a.admin, &a.role)
		all = append(all, a)
		return err
	}, "SELECT u.id, u.username, u.platform_admin, m.role FROM memberships AS m JOIN users AS u ON u.id = m.user_id WHERE m.tenant_id = ?"+
		" UNION SELECT u.id, u.username, u.platform_admin, '' FROM api_keys AS k JOIN users AS u ON u.id = k.owner_id WHERE k.tenant_id = ? AND k.revoked_at = 0 AND u.platform_admin = 1", m.id, m.id)
	if err != nil {
		return nil, err
	}
	list = map[int64]string{}
	for _, a := range all {
		var other int64
		var admin bool
		err := m.To.LookRows(ctx, "find account", func(rows *sql.Rows) error { return rows.Scan(&other, &admin) }, "SELECT id, platform_admin FROM users WHERE username = ?", a.name)
		switch {
		case err != nil:
			return nil, err
		case a.admin && a.role != "": // administrators of the platform are in each cell by themselves
		case a.admin && admin:
			m.owners[a.id] = other
		case a.admin:
			return nil, domain.Errorf(domain.CodeConflict, "API keys belong to the platform administrator %q, who is none in the target; make the account there, or revoke the keys", a.name)
		case other != 0 && other != a.id:
			return nil, domain.Errorf(domain.CodeConflict, "the target has another account named %q; if it is the same person, delete one of them, else rename it", a.name)
		default:
			list[a.id] = a.role
		}
	}
	return list, nil
}

// people makes the members of the tenant accounts and members in the target.
func (m *Move) people(ctx context.Context) error {
	list, err := m.members(ctx)
	if err != nil {
		return err
	}
	users := m.tables["users"]
	for id, role := range list {
		rows, err := users.read(ctx, m.From.Lookup, "id = ?", id)
		if err != nil {
			return err
		}
		err = m.To.RunRepeatable(ctx, "copy account", func(t *db.Tx) error {
			there := false
			if err := db.Query(t.Ctx, t.Conn, func(*sql.Rows) error { there = true; return nil }, "SELECT id FROM users WHERE id = ?", id); err != nil {
				return err
			}
			if !there {
				if err := users.insert(t, rows); err != nil {
					return err
				}
			}
			if _, err := t.Exec(t.Ctx, "DELETE FROM memberships WHERE tenant_id = ? AND user_id = ?", m.id, id); err != nil {
				return err
			}
			_, err := t.Exec(t.Ctx, "INSERT INTO memberships (tenant_id, user_id, role) VALUES (?, ?, ?)", m.id, id, role)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
