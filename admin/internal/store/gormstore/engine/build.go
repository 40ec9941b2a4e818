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
	handlers, err := json.Marshal(p.Build.Handlers)
	if err != nil {
		return 0, fmt.Errorf("encode handlers: %w", err)
	}
	if len(known) == 0 {
		freed, err := evictBuilds(t, k, len(handlers), now, coming)
		if err != nil {
			return 0, err
		}
		bytes = int64(len(handlers)) + int64(len(p.Build.Catalogue)) + domain.StoredRow - freed
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

// evictBuilds removes builds that are not in force and not in use. The first ones are beyond
// keptBuilds and were not seen for keptFor. The next ones were seen longest ago. It ends when
// one more build with so many bytes of names fits into store.MaxBuilds and
// store.MaxBuildNames. coming are used in a
// moment. It returns the bytes that they counted. CodeQuotaExceeded means that all builds
// left are in use. Nodes that register at the same time may each add one beyond the limit.
func evictBuilds(t *db.Tx, k buildKey, names int, now time.Time, coming []string) (freed int64, err error) {
	type build struct {
		digest string
		seenAt int64
		inUse  bool // it is in force
		names  int
	}
	rows, err := db.Select(t.Ctx, t.Conn, func(r *build) []any { return []any{&r.digest, &r.seenAt, &r.inUse, &r.names} },
		"SELECT digest, last_seen_at, applied, OCTET_LENGTH(handlers) FROM executor_builds WHERE tenant_id = ? AND executor_id = ? ORDER BY first_seen_at DESC LIMIT ?", k.tenant, k.executor, record.MaxPage)
	if err != nil {
		return 0, err
	}
	var gone []string
	var rest []build
	count := 1
	for i, r := range rows {
		if old := i >= keptBuilds && r.seenAt < db.Millis(now.Add(-keptFor)); old && !r.inUse && !slices.Contains(coming, r.digest) {
			gone = append(gone, r.digest)
			continue
		}
		rest, count, names = append(rest, r), count+1, names+r.names
	}
	full := func() bool { return count > store.MaxBuilds || names > store.MaxBuildNames }
	if full() {
		used, err := usedBuilds(t, k, now)
		if err != nil {
			return 0, err
		}
		slices.SortStableFunc(rest, func(a, b build) int { return cmp.Compare(a.seenAt, b.seenAt) })
		for _, r := range rest {
			if full() && !r.inUse && !used[r.digest] && !slices.Contains(coming, r.digest) {
				gone, count, names = append(gone, r.digest), count-1, names-r.names
			}
		}
	}
	if full() {
		return 0, domain.Errorf(domain.CodeQuotaExceeded,
			"instances of %d different builds of this executor run, and the maximum is %d, with %d bytes of handlers' names: instances of one build register the same handlers and jobs; stop some of the others", count, store.MaxBuilds, store.MaxBuildNames)
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

// usedBuilds are those that an instance has, or had less than domain.BuildGrace ago.
func usedBuilds(t *db.Tx, k buildKey, now time.Time) (map[string]bool, error) {
	return db.Set[string](t.Ctx, t.Conn,
		"SELECT DISTINCT build FROM instances WHERE tenant_id = ? AND executor_id = ? AND (gone_at = 0 OR gone_at > ?)",
		k.tenant, k.executor, db.Millis(now.Add(-domain.BuildGrace)))
}
