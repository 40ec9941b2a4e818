package db

import "github.com/carillon-sched/carillon/admin/internal/domain"

// InReach is the condition that an executor is in reach.
func InReach(column string, r domain.Reach) string {
	switch {
	case !r.Bounded():
		return "1 = 1"
	case len(r.IDs()) == 0:
		return "1 = 0"
	default:
		return column + " IN (" + IDList(r.IDs()) + ")"
	}
}
