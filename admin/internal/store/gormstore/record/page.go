package record

import (
	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// MaxPage bounds every list, whatever the caller asks for.
const MaxPage = 1000

// PageSize is how many items a page of limit has.
func PageSize(limit int) int {
	if limit <= 0 {
		return 50
	}
	return min(limit, MaxPage)
}

// FindWithin reads up to limit rows that narrow chooses, and ends behind the row with which
// the sizes reach domain.MaxPageBytes. It reads one row at a time.
func FindWithin[R any](g *gorm.DB, limit int, size func(*R) int) (rows []R, more bool, err error) {
	found, err := g.Limit(limit + 1).Model(new(R)).Rows()
	if err != nil {
		return nil, false, err
	}
	defer found.Close()
	total := 0
	for found.Next() {
		if len(rows) == limit || total >= domain.MaxPageBytes {
			return rows, true, nil
		}
		var r R
		if err := g.ScanRows(found, &r); err != nil {
			return nil, false, err
		}
		rows = append(rows, r)
		total += size(&r)
	}
	return rows, false, found.Err()
}
