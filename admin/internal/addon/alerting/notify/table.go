package notify

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Tables are the tables of alerting, as package alertsql keeps them. Every method takes
// the tenant where the data has one. Errors are as in package store.
type Tables interface {
	Alerts
	AlertChannels
	AlertRules
	// WithoutOutage leaves out the executors with an outage since their first instance was
	// lost. The alert of the outage tells enough.
	WithoutOutage(ctx context.Context, list []store.LostInstances) ([]store.LostInstances, error)
}

// Alerts counts events in incidents, makes deliveries of these, and is the log of
// them.
type Alerts interface {
	// ExpandAlertEvents takes up to limit events that nobody has counted yet, lets
	// group decide which incidents they belong to, and writes these, in one
	// transaction, one at a time in the cluster. It returns how many events there
	// were.
	ExpandAlertEvents(ctx context.Context, limit int, group func(*AlertBatch)) (int, error)
	// EvaluateAlertRules takes a rule whose condition is looked for and whose time has
	// come, and writes an event of each run or job that it finds, once. It looks at a
	// bounded number of them at a time. false: no rule was due.
	EvaluateAlertRules(ctx context.Context) (bool, error)
	// TellIncidents takes up to limit incidents whose time has come, lets tell
	// decide what becomes of them and who is told, and writes the deliveries, in
	// one transaction. One is left out whose receiver was not told yet of an
	// earlier one: that tells how the incident stands then. It returns how many
	// incidents there were, and how long it is until the next one is to be looked
	// at, or an event that gathers to be counted (0: there is neither).
	TellIncidents(ctx context.Context, limit int, tell func(now time.Time, due []*DueIncident)) (int, time.Duration, error)
	// ListIncidents lists a tenant's, newest first.
	ListIncidents(ctx context.Context, p ListIncidentsParams) (store.Page[domain.Incident], error)
	FindIncident(ctx context.Context, tenant domain.TenantID, id domain.IncidentID) (domain.Incident, error)
	// ChangeIncident lets change move one on, and writes it. What change returns
	// is returned.
	ChangeIncident(ctx context.Context, tenant domain.TenantID, id domain.IncidentID, change func(i *domain.Incident, now time.Time) error) (domain.Incident, error)
	// ListIncidentEvents lists the events of an incident that have a row, newest first.
	ListIncidentEvents(ctx context.Context, p ListIncidentEventsParams) ([]domain.AlertEvent, error)
	// ClaimDueDeliveries takes up to Limit deliveries whose time has come,
	// counts the attempt and hides them from others for Hold, or until their
	// claimer is not among the Living any more.
	ClaimDueDeliveries(ctx context.Context, p ClaimDeliveriesParams) ([]DueDelivery, error)
	// ReleaseDeliveries gives back what this boot has claimed, at once; what
	// another one has taken meanwhile stays with it.
	ReleaseDeliveries(ctx context.Context, boot string, ids []int64) error
	// FinishDelivery writes what became of an attempt to deliver. retryIn is
	// used with DeliveryPending.
	FinishDelivery(ctx context.Context, id int64, state domain.DeliveryState, retryIn time.Duration, lastError string) error
	ListDeliveries(ctx context.Context, p ListDeliveriesParams) ([]domain.Delivery, error)
	// OutboxLag is how long what has to be told waits already: since the oldest
	// event without deliveries, or since the earliest pending delivery was due.
	OutboxLag(ctx context.Context) (time.Duration, error)
}

type ClaimDeliveriesParams struct {
	Limit int
	Hold  time.Duration
	// Boot is the claiming node's.
	Boot string
	// Living are the boots of all nodes whose leases last, or may. The claims
	// of any other are free. Empty: not known, nothing becomes free.
	Living []string
}

// AlertBatch is what one transaction of ExpandAlertEvents decides about.
type AlertBatch struct {
	Now    time.Time
	Events []GroupedEvent // in the order in which they may be told
	// Live are the incidents that the events may join, by the keys of package
	// domain. Those that group makes are added here.
	Live map[domain.IncidentKey]*domain.Incident
	// Recent are the newest incidents that live of each executor's single jobs.
	Recent map[domain.ExecutorID][]*domain.Incident
	// Offline are the executors of the events that have no instance online now.
	Offline map[domain.ExecutorID]bool
	NewID   func() domain.IncidentID
	// Tenants are what the events' tenants say.
	Tenants map[domain.TenantID]TenantAlerts
	// Direct are deliveries of events that belong to no incident.
	Direct []domain.Delivery
}

// Keys are those of the incidents that an event may join.
func (e *GroupedEvent) Keys() []string {
	switch class := e.Event.Class(); {
	case e.Event.Kind.Platform():
		return []string{domain.PlatformIncidentKey(&e.Event)}
	case class != "":
		keys := []string{e.Rule.Key(domain.ExecutorIncidentKey(e.Executor.ID, class)), e.Rule.Key(domain.JobIncidentKey(e.Event.JobID, e.Event.Kind))}
		if e.OutageKey != "" {
			keys = append(keys, e.OutageKey)
		}
		if e.Event.Cause() == domain.BySchedulerBehind {
			keys = append(keys, domain.SchedulerIncidentKey)
		}
		return keys
	}
	return nil
}

// Decide finds the rule that an event is told by, and the outage that may explain it.
func (e *GroupedEvent) Decide(rules []domain.AlertRule) {
	of := func(kind domain.AlertKind) *domain.AlertRule {
		return domain.RuleOf(rules, kind, e.Executor.ID, e.Event.JobID, e.Job.Spec.Labels)
	}
	if e.Event.Class() == "" {
		return
	}
	if e.Rule = domain.RuleByID(rules, e.Event.Rule); e.Rule == nil {
		e.Rule = of(e.Event.Kind)
	}
	if e.Event.Cause() == domain.ByExecutorDown {
		e.OutageRule = of(domain.AlertNoExecutor)
		e.OutageKey = e.OutageRule.Key(domain.ExecutorIncidentKey(e.Executor.ID, domain.ClassUnavailable))
	}
}

// GroupedEvent is an event, and what was decided about it.
type GroupedEvent struct {
	AlertContext // without Execution
	// Rule is the one that decides; nil: none does. Facts are what it asks for.
	Rule  *domain.AlertRule
	Facts domain.AlertFacts
	// OutageKey is that of the incident that tells, for its job, that no instance is
	// online, where that explains the event; else it is empty. OutageRule decides it.
	OutageKey  string
	OutageRule *domain.AlertRule
	// Incident is what it is counted in; nil: nobody has to know.
	Incident  *domain.Incident
	Receivers []domain.Receiver
}

// TenantAlerts is what a tenant says about its alerts.
type TenantAlerts struct {
	Settings domain.AlertSettings
	Rules    []domain.AlertRule // in the order in which they decide
	Channels map[domain.ChannelID]domain.AlertChannel
}

// RecentIncidents is how many AlertBatch.Recent has of an executor.
const RecentIncidents = 20

// DueIncident is an incident whose time has come.
type DueIncident struct {
	*domain.Incident
	// Rule is the one that it was opened by; nil: none, or it is gone.
	Rule *domain.AlertRule
	// Labels are those of its job; nil: it is about several.
	Labels map[string]string
	// TenantAlerts is without rules; Silences are those that last now.
	TenantAlerts
	Silences []domain.AlertSilence
	// Receivers in no order; tell may add some.
	Receivers []domain.Receiver
	// Succeeded is when a run of its job, or of its executor if it is about several,
	// succeeded after its newest event; zero: none did.
	Succeeded time.Time
	// Waiting is how many runs wait for the slots of its jobs, of an AlertRunsPileUp.
	Waiting int64
	// Online is how many instances its executor has.
	Online int
	// Unsent: a message about it is still to be delivered. Only of momentary ones that are over.
	Unsent bool
	// Told are indices of Receivers: who is told now.
	Told []int
}

// ListIncidentsParams select incidents.
type ListIncidentsParams struct {
	Tenant   domain.TenantID
	State    domain.IncidentState // 0 = all
	Executor domain.ExecutorID    // 0 = all
	Before   domain.IncidentID    // cursor: ids below; 0 = newest
	Limit    int
}

// ListIncidentEventsParams select events of an incident.
type ListIncidentEventsParams struct {
	Tenant   domain.TenantID
	Incident domain.IncidentID
	Before   int64 // cursor: ids below; 0 = newest
	Limit    int
}

// AlertContext is an event with what a message about it needs.
type AlertContext struct {
	Event     domain.AlertEvent
	Job       domain.Job // at the event's revision
	Executor  domain.Executor
	Execution *domain.Execution // nil for events that are not about a run
	Tenant    domain.Tenant
}

type DueDelivery struct {
	Delivery domain.Delivery
	// Context is of the event; its job is the delivery's, where that is another one.
	Context AlertContext
	// Incident is the one it tells of, as it stands now; nil: it is of the event.
	Incident *domain.Incident
	// Channel is the one that the delivery names; nil: it names none, or there is
	// none of that id in its tenant any more.
	Channel *domain.AlertChannel
}

type ListDeliveriesParams struct {
	Tenant domain.TenantID
	Job    domain.JobID
	State  domain.DeliveryState // 0 = all
	// Incident selects its deliveries; 0 = all.
	Incident domain.IncidentID
	Before   int64 // cursor: ids below; 0 = newest
	Limit    int
}
