package record

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// SearchedRows bounds the rows of a kind that one search reads.
const SearchedRows = 20_000

// NameSearch finds rows of a tenant by id or name. Its table has the columns id, tenant_id and
// name. Conditions begin with AND.
type NameSearch struct {
	Table string
	// Index begins with tenant_id. Empty: the database chooses one.
	Index string
	// Sorted: the name follows tenant_id in the index. Names that begin with the text are then
	// found behind the first SearchedRows, too.
	Sorted bool
	// Among is about the rows that are read, and Where about those that are found: the table is
	// d there. Named is Where for rows that are found by name.
	Among, Where, Named string
	// Join adds tables for Hint, an expression. Empty: there are none.
	Join, Hint string
}

// Find reads a bounded number of rows, whatever the text.
func (n *NameSearch) Find(ctx context.Context, q db.Querier, d db.Dialect, s domain.SearchQuery) ([]domain.Found, bool, error) {
	var all []domain.Found
	if id := s.ID(); id != 0 {
		byID, err := FindMatches(ctx, q, fmt.Sprintf("SELECT d.id, d.name, %s, %d FROM %s AS d%s WHERE d.id = ? AND d.tenant_id = ?%s", n.hint(), domain.MatchID, n.Table, n.Join, n.Where), id, int64(s.Tenant))
		if err != nil {
			return nil, false, err
		}
		all = byID
	}
	table := n.Table
	if n.Index != "" {
		table += d.ByIndex(n.Index)
	}
	read, err := db.SelectColumn[int](ctx, q, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM %s WHERE tenant_id = ?%s LIMIT %d) AS c", table, n.Among, SearchedRows+1), int64(s.Tenant))
	if err != nil || len(read) == 0 {
		return nil, false, err
	}
	cut := read[0] > SearchedRows
	if cut && n.Sorted {
		first, err := n.named(ctx, q, d, table, " AND name >= ? AND name < ? ORDER BY name", s, s.Text, db.PrefixEnd(s.Text))
		if err != nil {
			return nil, false, err
		}
		if all = append(all, first...); len(first) > domain.MaxFound {
			return all, true, nil
		}
	}
	named, err := n.named(ctx, q, d, table, "", s)
	return append(all, named...), cut, err
}

// named finds rows by name among the first SearchedRows that meet a condition.
func (n *NameSearch) named(ctx context.Context, q db.Querier, d db.Dialect, table, condition string, s domain.SearchQuery, bounds ...any) ([]domain.Found, error) {
	begins, beginning := db.PrefixIn(s.Text, "c.name")
	has, part := db.TextIn(s.Text, "c.name")
	statement := fmt.Sprintf("SELECT d.id, d.name, %s, CASE WHEN c.name = ? THEN %d WHEN %s THEN %d ELSE %d END AS found FROM"+
		" (SELECT id, name FROM %s WHERE tenant_id = ?%s%s LIMIT %d) AS c%s%s AS d%s ON d.id = c.id%s WHERE %s%s%s ORDER BY found, c.name LIMIT %d",
		n.hint(), domain.MatchName, begins, domain.MatchPrefix, domain.MatchPart,
		table, n.Among, condition, SearchedRows, d.InOrder(), n.Table, d.ByPrimary(), n.Join, has, n.Where, n.Named, domain.MaxFound+1)
	args := append([]any{s.Text}, beginning...)
	args = append(append(args, int64(s.Tenant)), bounds...)
	return FindMatches(ctx, q, statement, append(args, part...)...)
}

func (n *NameSearch) hint() string {
	if n.Hint == "" {
		return "''"
	}
	return n.Hint
}

// FindMatches reads ids, names, hints and matches.
func FindMatches(ctx context.Context, q db.Querier, statement string, args ...any) ([]domain.Found, error) {
	return db.Select(ctx, q, func(f *domain.Found) []any { return []any{&f.ID, &f.Name, &f.Hint, &f.Match} }, statement, args...)
}
