package notify

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
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
	ListIncidents(ctx context.Context, p ListIncidentsParams) (store.Page[noun.Incident], error)
	FindIncident(ctx context.Context, tenant domain.TenantID, id domain.IncidentID) (noun.Incident, error)
	// ChangeIncident lets change move one on, and writes it. What change returns
	// is returned.
	ChangeIncident(ctx context.Context, tenant domain.TenantID, id domain.IncidentID, change func(i *noun.Incident, now time.Time) error) (noun.Incident, error)
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
	FinishDelivery(ctx context.Context, id int64, state noun.DeliveryState, retryIn time.Duration, lastError string) error
	ListDeliveries(ctx context.Context, p ListDeliveriesParams) ([]noun.Delivery, error)
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
	Live map[noun.IncidentKey]*noun.Incident
	// Recent are the newest incidents that live of each executor's single jobs.
	Recent map[domain.ExecutorID][]*noun.Incident
	// Offline are the executors of the events that have no instance online now.
	Offline map[domain.ExecutorID]bool
	NewID   func() domain.IncidentID
	// Tenants are what the events' tenants say.
	Tenants map[domain.TenantID]TenantAlerts
	// Direct are deliveries of events that belong to no incident.
	Direct []noun.Delivery
}

// Keys are those of the incidents that an event may join.
func (e *GroupedEvent) Keys() []string {
	switch class := noun.ClassOf(&e.Event); {
	case e.Event.Kind.Platform():
		return []string{noun.PlatformIncidentKey(&e.Event)}
	case class != "":
		keys := []string{e.Rule.Key(noun.ExecutorIncidentKey(e.Executor.ID, class)), e.Rule.Key(noun.JobIncidentKey(e.Event.JobID, e.Event.Kind))}
		if e.OutageKey != "" {
			keys = append(keys, e.OutageKey)
		}
		if noun.CauseOf(&e.Event) == noun.BySchedulerBehind {
			keys = append(keys, noun.SchedulerIncidentKey)
		}
		return keys
	}
	return nil
}

// Decide finds the rule that an event is told by, and the outage that may explain it.
func (e *GroupedEvent) Decide(rules []noun.AlertRule) {
	of := func(kind domain.AlertKind) *noun.AlertRule {
		return noun.RuleOf(rules, kind, e.Executor.ID, e.Event.JobID, e.Job.Spec.Labels)
	}
	if noun.ClassOf(&e.Event) == "" {
		return
	}
	if e.Rule = noun.RuleByID(rules, e.Event.Rule); e.Rule == nil {
		e.Rule = of(e.Event.Kind)
	}
	if noun.CauseOf(&e.Event) == noun.ByExecutorDown {
		e.OutageRule = of(domain.AlertNoExecutor)
		e.OutageKey = e.OutageRule.Key(noun.ExecutorIncidentKey(e.Executor.ID, noun.ClassUnavailable))
	}
}

// GroupedEvent is an event, and what was decided about it.
type GroupedEvent struct {
	AlertContext // without Execution
	// Rule is the one that decides; nil: none does. Facts are what it asks for.
	Rule  *noun.AlertRule
	Facts noun.AlertFacts
	// OutageKey is that of the incident that tells, for its job, that no instance is
	// online, where that explains the event; else it is empty. OutageRule decides it.
	OutageKey  string
	OutageRule *noun.AlertRule
	// Incident is what it is counted in; nil: nobody has to know.
	Incident  *noun.Incident
	Receivers []noun.Receiver
}

// TenantAlerts is what a tenant says about its alerts.
type TenantAlerts struct {
	Settings noun.AlertSettings
	Rules    []noun.AlertRule // in the order in which they decide
	Channels map[domain.ChannelID]noun.AlertChannel
}

// RecentIncidents is how many AlertBatch.Recent has of an executor.
const RecentIncidents = 20

// DueIncident is an incident whose time has come.
type DueIncident struct {
	*noun.Incident
	// Rule is the one that it was opened by; nil: none, or it is gone.
	Rule *noun.AlertRule
	// Labels are those of its job; nil: it is about several.
	Labels map[string]string
	// TenantAlerts is without rules; Silences are those that last now.
	TenantAlerts
	Silences []noun.AlertSilence
	// Receivers in no order; tell may add some.
	Receivers []noun.Receiver
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
	State    noun.IncidentState // 0 = all
	Executor domain.ExecutorID  // 0 = all
	Before   domain.IncidentID  // cursor: ids below; 0 = newest
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
	Delivery noun.Delivery
	// Context is of the event; its job is the delivery's, where that is another one.
	Context AlertContext
	// Incident is the one it tells of, as it stands now; nil: it is of the event.
	Incident *noun.Incident
	// Channel is the one that the delivery names; nil: it names none, or there is
	// none of that id in its tenant any more.
	Channel *noun.AlertChannel
}

type ListDeliveriesParams struct {
	Tenant domain.TenantID
	Job    domain.JobID
	State  noun.DeliveryState // 0 = all
	// Incident selects its deliveries; 0 = all.
	Incident domain.IncidentID
	Before   int64 // cursor: ids below; 0 = newest
	Limit    int
}
