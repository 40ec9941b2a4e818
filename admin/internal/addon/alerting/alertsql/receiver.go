package alertsql

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type receiverRow struct {
	IncidentID  int64  `gorm:"column:incident_id;primaryKey;autoIncrement:false"`
	ReceiverKey string `gorm:"column:receiver_key;primaryKey"`
	Channel     string `gorm:"column:channel"`
	ChannelID   int64  `gorm:"column:channel_id"`
	Target      string `gorm:"column:target"`
	JobID       int64  `gorm:"column:job_id"`
	Told        bool   `gorm:"column:told"`
}

func (receiverRow) TableName() string { return "alert_receivers" }

func toReceiverRow(i domain.IncidentID, r *noun.Receiver) receiverRow {
	return receiverRow{
		IncidentID: int64(i), ReceiverKey: r.Key(), Channel: r.Channel, ChannelID: int64(r.ChannelID), Target: record.Clip(r.Target, domain.MaxWebhookLength), JobID: int64(r.Job), Told: r.Told,
	}
}

func (r *receiverRow) receiver() noun.Receiver {
	return noun.Receiver{Channel: r.Channel, ChannelID: domain.ChannelID(r.ChannelID), Target: r.Target, Job: domain.JobID(r.JobID), Told: r.Told}
}

// moveParts gives events and receivers of an absorbed incident to its parent.
func (g *grouping) moveParts(part *noun.Incident) error {
	if _, err := g.t.Exec(g.t.Ctx, "UPDATE alert_events SET incident_id = ? WHERE incident_id = ?", int64(part.Parent), int64(part.ID)); err != nil {
		return fmt.Errorf("move events: %w", err)
	}
	var rows []receiverRow
	if err := g.t.Gorm.Where("incident_id = ?", int64(part.ID)).Find(&rows).Error; err != nil {
		return fmt.Errorf("load receivers: %w", err)
	}
	return addReceivers(g.t, part.Parent, domain.Collect(rows, (*receiverRow).receiver))
}

// addReceivers adds those that are not there yet.
func addReceivers(t *db.Tx, incident domain.IncidentID, list []noun.Receiver) error {
	seen := map[string]bool{}
	var rows []receiverRow
	for n := range list {
		row := toReceiverRow(incident, &list[n])
		if !seen[row.ReceiverKey] {
			seen[row.ReceiverKey] = true
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b receiverRow) int { return strings.Compare(a.ReceiverKey, b.ReceiverKey) })
	if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(rows, 200).Error; err != nil {
		return fmt.Errorf("add receivers: %w", err)
	}
	return nil
}
