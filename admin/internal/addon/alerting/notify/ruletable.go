package notify

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// AlertRules keeps what tenants say about their alerts.
type AlertRules interface {
	// CreateSilence fills in when it was made. CodeConflict: there are
	// noun.MaxAlertSilences that are not over.
	CreateSilence(ctx context.Context, s noun.AlertSilence) (noun.AlertSilence, error)
	// EndSilence ends one now; one that is over stays as it is.
	EndSilence(ctx context.Context, tenant domain.TenantID, id domain.SilenceID, by string) (noun.AlertSilence, error)
	FindSilence(ctx context.Context, tenant domain.TenantID, id domain.SilenceID) (noun.AlertSilence, error)
	// ListSilences lists those that end after an instant, the first to end first.
	ListSilences(ctx context.Context, tenant domain.TenantID, endAfter time.Time) ([]noun.AlertSilence, error)

	// FindAlertSettings returns version 0 where nobody has said anything.
	FindAlertSettings(ctx context.Context, tenant domain.TenantID) (noun.AlertSettings, error)
	// SaveAlertSettings adds one to the version. CodeRevisionMismatch: they are at
	// another version than s.Version.
	SaveAlertSettings(ctx context.Context, s noun.AlertSettings) (noun.AlertSettings, error)
}
