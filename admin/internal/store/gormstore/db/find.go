package db

import (
	"context"
	"strings"

	"gorm.io/gorm"
)

// FindOne reads one row; CodeNotFound when there is none.
func FindOne[R any](ctx context.Context, s *DB, step, where string, args ...any) (row R, err error) {
	err = s.Look(ctx, step, func(_ context.Context, _ Querier, g *gorm.DB) error { return g.Where(where, args...).Take(&row).Error })
	return row, err
}

// FindAll reads rows in an order.
func FindAll[R any](ctx context.Context, s *DB, step, order, where string, args ...any) (rows []R, err error) {
	err = s.Look(ctx, step, func(_ context.Context, _ Querier, g *gorm.DB) error {
		return g.Where(where, args...).Order(order).Find(&rows).Error
	})
	return rows, err
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

// Placeholders are n parameters of a list.
func Placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
