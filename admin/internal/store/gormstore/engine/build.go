package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type buildKey struct {
	tenant, executor int64
	digest           string
}

// noteBuild writes what a registration tells that was not known. Those of a
// known build write nothing, so that an executor that flaps costs its
// instances' rows only. It returns by how much the stored bytes grow.
// coming are the builds of the same transaction. CodeQuotaExceeded means that there is no
// room for another build or its handlers beside them.
func noteBuild(t *db.Tx, k buildKey, p store.RegisterInstanceParams, now time.Time, coming []string) (bytes int64, err error) {
	if k.digest == "" {
		return 0, takeHandlers(t, k, p.Handlers, now, coming)
	}
	var known []record.BuildRow
	err = t.Gorm.Select("digest", "last_seen_at", "no_jobs").Where("tenant_id = ? AND executor_id = ? AND digest = ?", k.tenant, k.executor, k.digest).Find(&known).Error
	if err != nil {
		return 0, err
	}
	// The first instance that may declare makes the build unsettled again.
	allowed := len(known) > 0 && known[0].NoJobs && !p.Build.NoJobs
	if len(known) > 0 && !allowed && known[0].LastSeenAt > db.Millis(now.Add(-store.BuildLastSeen)) {
		return 0, nil
	}
	leaving, err := roomForHandlers(t, k, p.Handlers, now, coming, false)
	if err != nil {
		return 0, err
	}
	if len(known) == 0 {
		freed, err := evictBuilds(t, k, now, coming)
		if err != nil {
			return 0, err
		}
		bytes = -freed
	}
	handlers, err := json.Marshal(p.Build.Handlers)
	if err != nil {
		return 0, fmt.Errorf("encode handlers: %w", err)
	}
	if len(known) == 0 {
		bytes += int64(len(handlers)) + int64(len(p.Build.Catalogue)) + domain.StoredRow
		if err := record.AllowBytes(t, domain.TenantID(k.tenant), bytes); err != nil {
			return 0, err
		}
	}
	row := record.BuildRow{
		TenantID: k.tenant, ExecutorID: k.executor, Digest: k.digest, AppVersion: record.Clip(p.Build.Version, record.NameSize),
		Generation: p.Build.Generation, Handlers: string(handlers), Catalogue: p.Build.Catalogue, NoJobs: p.Build.NoJobs, FirstSeenAt: db.Millis(now), LastSeenAt: db.Millis(now),
	}
	changed := []string{"last_seen_at"}
	if allowed {
		changed = append(changed, "no_jobs", "applied")
	}
	err = t.Gorm.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "tenant_id"}, {Name: "executor_id"}, {Name: "digest"}},
		DoUpdates: clause.AssignmentColumns(changed),
	}).Create(&row).Error
	if err != nil {
		return 0, err
	}
	if err := removeHandlers(t, k, leaving, now); err != nil {
		return 0, err
	}
	return bytes, mergeHandlers(t, k, p.Handlers, now, false)
}

const (
	// keptBuilds is how many builds of an executor are remembered at least.
	keptBuilds = 30
	// keptFor is for how long one is remembered after it was last seen, while
	// there are no more than store.MaxBuilds.
	keptFor = 24 * time.Hour
)

// evictBuilds removes builds that are not in force and that nobody uses: those
// beyond keptBuilds that were not seen for keptFor, and then those that were seen
// longest ago, until one more fits into store.MaxBuilds. coming are used in a
// moment. It returns the bytes that they counted. CodeQuotaExceeded means that all builds
// left are in use. Nodes that register at the same time may each add one beyond the limit.
func evictBuilds(t *db.Tx, k buildKey, now time.Time, coming []string) (freed int64, err error) {
	var rows []record.BuildRow
	err = t.Gorm.Select("digest", "last_seen_at", "applied").Where("tenant_id = ? AND executor_id = ?", k.tenant, k.executor).
		Order("first_seen_at DESC").Limit(record.MaxPage).Find(&rows).Error
	if err != nil || len(rows) <= keptBuilds {
		return 0, err
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
			return 0, err
		}
		if len(unused) < over {
			return 0, domain.Errorf(domain.CodeQuotaExceeded,
				"instances of %d different builds of this executor run, which is the maximum: instances of one build register the same handlers and jobs; stop some of the others", store.MaxBuilds)
		}
		gone = append(gone, unused[:over]...)
	}
	if len(gone) == 0 {
		return 0, nil
	}
	of := t.Gorm.Model(&record.BuildRow{}).Where("tenant_id = ? AND executor_id = ? AND digest IN ?", k.tenant, k.executor, gone).Session(&gorm.Session{})
	if err := of.Select("COALESCE(SUM(" + record.BuildBytes + "), 0)").Scan(&freed).Error; err != nil {
		return 0, err
	}
	return freed, of.Delete(&record.BuildRow{}).Error
}

// unusedBuilds are those of the list that no instance has, nor one had less than
// domain.BuildGrace ago; those that were seen longest ago come first.
func unusedBuilds(t *db.Tx, k buildKey, now time.Time, list []record.BuildRow) ([]string, error) {
	used, err := db.Set[string](t.Ctx, t.Conn,
		"SELECT DISTINCT build FROM instances WHERE tenant_id = ? AND executor_id = ? AND (gone_at = 0 OR gone_at > ?)",
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
