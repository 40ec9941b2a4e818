package alertsql

import (
	"fmt"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// eventRow is a row of alert_events: an event of the outbox, or what a rule has found. Its
// incident keeps it.
type eventRow struct {
	ID          int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID    int64  `gorm:"column:tenant_id"`
	Kind        string `gorm:"column:kind"`
	JobID       int64  `gorm:"column:job_id"`
	Revision    int64  `gorm:"column:revision"`
	ExecutionID int64  `gorm:"column:execution_id"`
	DedupeKey   string `gorm:"column:dedupe_key"`
	CreatedAt   int64  `gorm:"column:created_at;autoCreateTime:false"`
	ExpandedAt  int64  `gorm:"column:expanded_at"`
	Detail      string `gorm:"column:detail"`
	Missed      int64  `gorm:"column:missed"`
	TellAt      int64  `gorm:"column:tell_at"`
	Reason      string `gorm:"column:reason"`
	ExecutorID  int64  `gorm:"column:executor_id"`
	IncidentID  int64  `gorm:"column:incident_id"`
	RuleID      int64  `gorm:"column:rule_id"`
}

func (eventRow) TableName() string { return "alert_events" }

// event is what the row means.
func (r eventRow) event() domain.AlertEvent {
	return domain.AlertEvent{
		ID: r.ID, TenantID: domain.TenantID(r.TenantID), Kind: domain.AlertKind(r.Kind), JobID: domain.JobID(r.JobID), Revision: r.Revision,
		ExecutionID: domain.ExecutionID(r.ExecutionID), DedupeKey: r.DedupeKey, Detail: r.Detail, Missed: int(r.Missed), CreatedAt: db.Instant(r.CreatedAt),
		Reason: domain.Reason(r.Reason), Executor: domain.ExecutorID(r.ExecutorID), Incident: domain.IncidentID(r.IncidentID), Rule: domain.AlertRuleID(r.RuleID),
	}
}

// toEventRow is the row of an event of the outbox.
func toEventRow(e *domain.AlertEvent) eventRow {
	return eventRow{
		ID: e.ID, TenantID: int64(e.TenantID), Kind: string(e.Kind), JobID: int64(e.JobID), Revision: e.Revision,
		ExecutionID: int64(e.ExecutionID), DedupeKey: e.DedupeKey, Detail: e.Detail, CreatedAt: db.Millis(e.CreatedAt),
		Reason: string(e.Reason), ExecutorID: int64(e.Executor), Missed: int64(e.Missed),
	}
}

// insertEvents writes events; those whose dedupe key is there already change nothing.
func insertEvents(t *db.Tx, events []eventRow) error {
	if len(events) == 0 {
		return nil
	}
	if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(events, 200).Error; err != nil {
		return fmt.Errorf("write alert events: %w", err)
	}
	return nil
}
