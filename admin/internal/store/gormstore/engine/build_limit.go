package engine

import (
	"cmp"
	"database/sql"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

const (
	// keptBuilds is how many builds of an executor are remembered at least.
	keptBuilds = 30
	// keptFor is for how long one is remembered after it was last seen, while
	// there are no more than store.MaxBuilds.
	keptFor = 24 * time.Hour
)

// makeRoom removes builds that are not in force and that nobody uses: those
// beyond keptBuilds that were not seen for keptFor, and then those that were seen
// longest ago, until one more fits into store.MaxBuilds. coming are used in a
// moment. CodeQuotaExceeded: all that are left are in use. Nodes that register at
// the same time may each add one beyond the limit.
func makeRoom(t *db.Tx, k buildKey, now time.Time, coming []string) error {
	var rows []record.BuildRow
	err := t.Gorm.Select("digest", "last_seen_at", "applied").Where("tenant_id = ? AND executor_id = ?", k.tenant, k.executor).
		Order("first_seen_at DESC").Limit(record.MaxPage).Find(&rows).Error
	if err != nil || len(rows) <= keptBuilds {
		return err
	}
	var gone []string
	var rest []record.BuildRow
	for i, r := range rows {
		switch {
		case r.Applied || slices.Contains(coming, r.Digest):
		case i >= keptBuilds && r.LastSeenAt < db.Millis(now.Add(-keptFor)):
			gone = append(gone, r.Digest)
		default:
			rest = append(rest, r)
		}
	}
	if over := len(rows) - len(gone) + 1 - store.MaxBuilds; over > 0 {
		unused, err := unusedBuilds(t, k, now, rest)
		if err != nil {
			return err
		}
		if len(unused) < over {
			return domain.Errorf(domain.CodeQuotaExceeded,
				"instances of %d different builds of this executor run, which is the maximum: instances of one build register the same handlers and jobs; stop some of the others", store.MaxBuilds)
		}
		gone = append(gone, unused[:over]...)
	}
	if len(gone) == 0 {
		return nil
	}
	return t.Gorm.Where("tenant_id = ? AND executor_id = ? AND digest IN ?", k.tenant, k.executor, gone).Delete(&record.BuildRow{}).Error
}

// unusedBuilds are those of the list that no instance has, nor one had less than
// domain.BuildGrace ago; those that were seen longest ago come first.
func unusedBuilds(t *db.Tx, k buildKey, now time.Time, list []record.BuildRow) ([]string, error) {
	used := map[string]bool{}
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var build string
		err := rows.Scan(&build)
		used[build] = true
		return err
	}, "SELECT DISTINCT build FROM instances WHERE tenant_id = ? AND executor_id = ? AND (gone_at = 0 OR gone_at > ?)",
		k.tenant, k.executor, db.Millis(now.Add(-domain.BuildGrace)))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b record.BuildRow) int { return cmp.Compare(a.LastSeenAt, b.LastSeenAt) })
	var out []string
	for _, r := range list {
		if !used[r.Digest] {
			out = append(out, r.Digest)
		}
	}
	return out, nil
}
