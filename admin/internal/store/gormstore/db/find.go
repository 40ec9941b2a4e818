package db

import (
	"context"
	"database/sql"
	"strings"

	"gorm.io/gorm"
)

// FindOne reads one row; CodeNotFound when there is none.
func FindOne[R any](ctx context.Context, s *DB, step, where string, args ...any) (row R, err error) {
	err = s.Look(ctx, step, func(_ context.Context, _ Querier, g *gorm.DB) error { return g.Where(where, args...).Take(&row).Error })
	return row, err
}

// FindAll reads rows in an order.
func FindAll[R any](ctx context.Context, s *DB, step, order, where string, args ...any) ([]R, error) {
	return FindBy[R](ctx, s, step, func(g *gorm.DB) *gorm.DB { return g.Where(where, args...).Order(order) })
}

// FindPage is FindAll of limit rows at most.
func FindPage[R any](ctx context.Context, s *DB, step, order string, limit int, where string, args ...any) ([]R, error) {
	return FindBy[R](ctx, s, step, func(g *gorm.DB) *gorm.DB { return g.Where(where, args...).Order(order).Limit(limit) })
}

// FindBy reads the rows that narrow chooses.
func FindBy[R any](ctx context.Context, s *DB, step string, narrow func(*gorm.DB) *gorm.DB) (rows []R, err error) {
	err = s.Look(ctx, step, func(_ context.Context, _ Querier, g *gorm.DB) error { return narrow(g).Find(&rows).Error })
	return rows, err
}

// Select reads a statement's rows; into are where the columns of one belong.
func Select[R any](ctx context.Context, q Querier, into func(*R) []any, statement string, args ...any) (out []R, err error) {
	err = Query(ctx, q, func(rows *sql.Rows) error {
		var r R
		err := rows.Scan(into(&r)...)
		out = append(out, r)
		return err
	}, statement, args...)
	return out, err
}

// LookSelect is Select outside of a transaction.
func LookSelect[R any](ctx context.Context, s *DB, step string, into func(*R) []any, statement string, args ...any) (out []R, err error) {
	err = s.Look(ctx, step, func(ctx context.Context, q Querier, _ *gorm.DB) error {
		out, err = Select(ctx, q, into, statement, args...)
		return err
	})
	return out, err
}

// SelectColumn reads a statement's only column.
func SelectColumn[V any](ctx context.Context, q Querier, statement string, args ...any) ([]V, error) {
	return Select(ctx, q, func(v *V) []any { return []any{v} }, statement, args...)
}

// LookColumn is SelectColumn outside of a transaction.
func LookColumn[V any](ctx context.Context, s *DB, step, statement string, args ...any) ([]V, error) {
	return LookSelect(ctx, s, step, func(v *V) []any { return []any{v} }, statement, args...)
}

// Pairs reads a statement's two columns into a map.
func Pairs[K comparable, V any](ctx context.Context, q Querier, statement string, args ...any) (map[K]V, error) {
	out := map[K]V{}
	err := Query(ctx, q, func(rows *sql.Rows) error {
		var k K
		var v V
		err := rows.Scan(&k, &v)
		out[k] = v
		return err
	}, statement, args...)
	return out, err
}

// LookPairs is Pairs outside of a transaction.
func LookPairs[K comparable, V any](ctx context.Context, s *DB, step, statement string, args ...any) (out map[K]V, err error) {
	err = s.Look(ctx, step, func(ctx context.Context, q Querier, _ *gorm.DB) error {
		out, err = Pairs[K, V](ctx, q, statement, args...)
		return err
	})
	return out, err
}

// Set reads a statement's only column into a set.
func Set[K comparable](ctx context.Context, q Querier, statement string, args ...any) (map[K]bool, error) {
	list, err := SelectColumn[K](ctx, q, statement, args...)
	out := make(map[K]bool, len(list))
	for _, k := range list {
		out[k] = true
	}
	return out, err
}

// IDs collects the ids that are set.
func IDs[R any](rows []R, id func(R) int64) []int64 {
	var out []int64
	for _, r := range rows {
		if n := id(r); n != 0 {
			out = append(out, n)
		}
	}
	return out
}

// ByID reads the rows of the wanted ids, by id; what is not there is left out.
func ByID[R any](g *gorm.DB, where string, wanted []int64, id func(R) int64) (map[int64]R, error) {
	out := map[int64]R{}
	if len(wanted) == 0 {
		return out, nil
	}
	var rows []R
	err := g.Where(where, wanted).Find(&rows).Error
	for _, r := range rows {
		out[id(r)] = r
	}
	return out, err
}

// ListOnce is how many values of a list one statement names at most. SQLite takes 32,766
// parameters, MySQL and MariaDB 65,535.
const ListOnce = 500

// Placeholders are n parameters of a list.
func Placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// Lines are the names of a list that is stored one per line; names have no line breaks.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
