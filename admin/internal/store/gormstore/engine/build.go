package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

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
// instances' rows only. CodeQuotaExceeded: there is no room for another build
// beside coming, those that come in with the same transaction.
func noteBuild(t *db.Tx, k buildKey, p store.RegisterInstanceParams, now time.Time, coming []string) error {
	if k.digest == "" {
		return MergeHandlers(t, k.tenant, k.executor, p.Handlers, now, true)
	}
	var known []record.BuildRow
	err := t.Gorm.Select("digest", "last_seen_at", "no_jobs").Where("tenant_id = ? AND executor_id = ? AND digest = ?", k.tenant, k.executor, k.digest).Find(&known).Error
	if err != nil {
		return err
	}
	if len(known) == 0 {
		if err := makeRoom(t, k, now, coming); err != nil {
			return err
		}
	}
	// The first that may declare makes it news again, for whoever reconciles.
	allowed := len(known) > 0 && known[0].NoJobs && !p.Build.NoJobs
	if len(known) > 0 && !allowed && known[0].LastSeenAt > db.Millis(now.Add(-store.BuildLastSeen)) {
		return nil
	}
	handlers, err := json.Marshal(p.Build.Handlers)
	if err != nil {
		return fmt.Errorf("encode handlers: %w", err)
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
		return err
	}
	return MergeHandlers(t, k.tenant, k.executor, p.Handlers, now, false)
}

// MergeHandlers goes in name order, so that instances that start together do
// not wait for each other in a circle. Definitions that are there stay unless
// they are to be set.
func MergeHandlers(t *db.Tx, tenant, executor int64, handlers []domain.Handler, now time.Time, define bool) error {
	if len(handlers) == 0 {
		return nil
	}
	rows := make([]record.HandlerRow, len(handlers))
	for n, h := range handlers {
		rows[n] = record.HandlerRow{
			TenantID: tenant, ExecutorID: executor, Name: h.Name, Description: record.Clip(h.Description, record.MessageSize),
			InputSchema: h.InputSchema, OutputSchema: h.OutputSchema, Idempotent: h.Idempotent,
			FirstSeenAt: db.Millis(now), LastSeenAt: db.Millis(now),
		}
		if h.Calls == nil {
			continue
		}
		text, err := record.EncodeSpec(h.Calls)
		if err != nil {
			return fmt.Errorf("encode calls of handler %q: %w", h.Name, err)
		}
		rows[n].Calls = &text
	}
	slices.SortFunc(rows, func(a, b record.HandlerRow) int { return strings.Compare(a.Name, b.Name) })
	rows = slices.CompactFunc(rows, func(a, b record.HandlerRow) bool { return a.Name == b.Name })
	update := []string{"last_seen_at"}
	if define {
		update = append(update, "description", "input_schema", "output_schema", "idempotent", "calls")
	}
	return t.Gorm.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "tenant_id"}, {Name: "executor_id"}, {Name: "name"}},
		DoUpdates: clause.AssignmentColumns(update),
	}).Create(&rows).Error
}
