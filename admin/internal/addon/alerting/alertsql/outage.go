package alertsql

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// maxOutages bounds how many incidents of a tenant that are over are looked at for an
// outage.
const maxOutages = 500

// WithoutOutage implements notify.Tables.
func (s *Alerts) WithoutOutage(ctx context.Context, list []store.LostInstances) (out []store.LostInstances, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	err = s.Look(ctx, "look for outages", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out = nil
		for i := range list {
			x := &list[i]
			outages := 0
			err := db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&outages) },
				fmt.Sprintf("SELECT (SELECT COUNT(*) FROM alert_incidents WHERE tenant_id = ? AND state IN (%d, %d) AND kind = '%[3]s' AND executor_id = ?) +"+
					" (SELECT COUNT(*) FROM (SELECT kind, executor_id, resolved_at FROM alert_incidents WHERE tenant_id = ? AND state = %[4]d ORDER BY id DESC LIMIT %[5]d) AS ended"+
					" WHERE kind = '%[3]s' AND executor_id = ? AND resolved_at >= ?)",
					noun.IncidentOpen, noun.IncidentAcknowledged, domain.AlertNoExecutor, noun.IncidentResolved, maxOutages),
				int64(x.Tenant), int64(x.Executor), int64(x.Tenant), int64(x.Executor), db.Millis(x.Since))
			if err != nil {
				return err
			}
			if outages == 0 {
				out = append(out, *x)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
