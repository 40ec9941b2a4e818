package alertsql

import (
	"encoding/json"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type incidentRow struct {
	ID             int64   `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID       int64   `gorm:"column:tenant_id"`
	LiveKey        string  `gorm:"column:live_key"`
	Kind           string  `gorm:"column:kind"`
	RuleID         int64   `gorm:"column:rule_id"`
	Severity       string  `gorm:"column:severity"`
	EscalatedAt    int64   `gorm:"column:escalated_at"`
	ExecutorID     int64   `gorm:"column:executor_id"`
	JobID          int64   `gorm:"column:job_id"`
	ParentID       int64   `gorm:"column:parent_id"`
	State          int64   `gorm:"column:state"`
	OpenedAt       int64   `gorm:"column:opened_at"`
	LastAt         int64   `gorm:"column:last_at"`
	ResolvedAt     int64   `gorm:"column:resolved_at"`
	ResolvedBy     string  `gorm:"column:resolved_by"`
	AcknowledgedAt int64   `gorm:"column:acknowledged_at"`
	AcknowledgedBy string  `gorm:"column:acknowledged_by"`
	Events         int64   `gorm:"column:events"`
	Kept           int64   `gorm:"column:kept"`
	Reopened       int64   `gorm:"column:reopened"`
	FirstEventID   int64   `gorm:"column:first_event_id"`
	LastEventID    int64   `gorm:"column:last_event_id"`
	Jobs           *string `gorm:"column:jobs"`
	Detail         string  `gorm:"column:detail"`
	Told           int64   `gorm:"column:told"`
	ToldAt         int64   `gorm:"column:told_at"`
	ToldEvents     int64   `gorm:"column:told_events"`
	ToldState      int64   `gorm:"column:told_state"`
	ToldEventID    int64   `gorm:"column:told_event_id"`
	WakeAt         *int64  `gorm:"column:wake_at"`
}

// size is about how many bytes the large columns have.
func (r *incidentRow) size() int {
	if r.Jobs == nil {
		return 0
	}
	return len(*r.Jobs)
}

func (incidentRow) TableName() string { return "alert_incidents" }

func toIncidentRow(i *noun.Incident) (incidentRow, error) {
	row := incidentRow{
		ID: int64(i.ID), TenantID: int64(i.TenantID), LiveKey: i.Key, Kind: string(i.Kind), ExecutorID: int64(i.Executor), JobID: int64(i.Job),
		ParentID: int64(i.Parent), State: int64(i.State), OpenedAt: db.Millis(i.OpenedAt), LastAt: db.Millis(i.LastAt),
		ResolvedAt: db.Millis(i.ResolvedAt), ResolvedBy: i.ResolvedBy, AcknowledgedAt: db.Millis(i.AcknowledgedAt), AcknowledgedBy: i.AcknowledgedBy,
		Events: i.Events, Kept: i.Kept, Reopened: i.Reopened, FirstEventID: i.FirstEvent, LastEventID: i.LastEvent,
		Detail: record.Clip(i.Detail, record.MessageSize), Told: i.Told, ToldAt: db.Millis(i.ToldAt), ToldEvents: i.ToldEvents, ToldState: int64(i.ToldState),
		ToldEventID: i.ToldEvent, RuleID: int64(i.Rule), Severity: string(i.Severity), EscalatedAt: db.Millis(i.EscalatedAt),
	}
	if i.Live {
		wake := db.Millis(i.WakeAt)
		row.WakeAt = &wake
	}
	if len(i.Jobs) > 0 {
		text, err := json.Marshal(i.Jobs)
		if err != nil {
			return row, fmt.Errorf("encode jobs of incident: %w", err)
		}
		jobs := string(text)
		row.Jobs = &jobs
	}
	return row, nil
}

func (r *incidentRow) incident() (*noun.Incident, error) {
	i := &noun.Incident{
		ID: domain.IncidentID(r.ID), TenantID: domain.TenantID(r.TenantID), Key: r.LiveKey, Live: r.WakeAt != nil, Kind: domain.AlertKind(r.Kind),
		Executor: domain.ExecutorID(r.ExecutorID), Job: domain.JobID(r.JobID), Parent: domain.IncidentID(r.ParentID), State: noun.IncidentState(r.State),
		OpenedAt: db.Instant(r.OpenedAt), LastAt: db.Instant(r.LastAt), ResolvedAt: db.Instant(r.ResolvedAt), ResolvedBy: r.ResolvedBy,
		AcknowledgedAt: db.Instant(r.AcknowledgedAt), AcknowledgedBy: r.AcknowledgedBy, Events: r.Events, Kept: r.Kept, Reopened: r.Reopened,
		FirstEvent: r.FirstEventID, LastEvent: r.LastEventID, Detail: r.Detail, Told: r.Told, ToldAt: db.Instant(r.ToldAt), ToldEvents: r.ToldEvents,
		ToldState: noun.IncidentState(r.ToldState), ToldEvent: r.ToldEventID,
		Rule: domain.AlertRuleID(r.RuleID), Severity: noun.Severity(r.Severity), EscalatedAt: db.Instant(r.EscalatedAt),
	}
	if r.WakeAt != nil {
		i.WakeAt = db.Instant(*r.WakeAt)
	}
	if r.Jobs != nil {
		if err := json.Unmarshal([]byte(*r.Jobs), &i.Jobs); err != nil {
			return nil, fmt.Errorf("decode jobs of incident %d: %w", r.ID, err)
		}
	}
	return i, nil
}

// saveIncident writes one that was there.
func saveIncident(t *db.Tx, i *noun.Incident) error {
	row, err := toIncidentRow(i)
	if err != nil {
		return err
	}
	if err := t.Gorm.Model(&row).Select("*").Omit("id").Updates(&row).Error; err != nil {
		return fmt.Errorf("write incident: %w", err)
	}
	return nil
}
