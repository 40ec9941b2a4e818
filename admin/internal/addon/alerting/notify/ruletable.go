package notify

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// AlertRules keeps what tenants say about their alerts.
type AlertRules interface {
	// CreateAlertRule writes version 1. CodeConflict: the name is taken, or there
	// are noun.MaxAlertRules.
	CreateAlertRule(ctx context.Context, r noun.AlertRule) (noun.AlertRule, error)
	// UpdateAlertRule writes the spec and adds one to the version. CodeConflict: the
	// name is taken. CodeRevisionMismatch: it is at another version than r.Version.
	UpdateAlertRule(ctx context.Context, r noun.AlertRule) (noun.AlertRule, error)
	// DeleteAlertRule forgets it; its incidents go on as if there were none.
	DeleteAlertRule(ctx context.Context, tenant domain.TenantID, id domain.AlertRuleID) error
	FindAlertRule(ctx context.Context, tenant domain.TenantID, id domain.AlertRuleID) (noun.AlertRule, error)
	// ListAlertRules lists all of a tenant in the order in which they decide.
	ListAlertRules(ctx context.Context, tenant domain.TenantID) ([]noun.AlertRule, error)

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
