package notify

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const (
	// stormJobs is how many jobs of an executor have to be in the same trouble
	// within stormWindow, so that it is told as the executor's.
	stormJobs   = 5
	stormWindow = time.Minute
)

// group decides which incident each event belongs to. What happens to a job is the
// job's incident, unless it happens to many jobs of its executor, or all of the
// executor is known to be in trouble: then it is the executor's. It is pure; the
// store calls it inside a transaction, perhaps twice.
func (s *Service) group(b *AlertBatch) {
	g := grouper{b: b, policy: &s.opt.Policy, operators: s.opt.Operators}
	byCause := map[cause][]*GroupedEvent{}
	for i := range b.Events {
		e := &b.Events[i]
		receivers, wanted := g.operators.receivers(e, b.Tenants[e.Event.TenantID])
		if !wanted && g.down(e) { // whoever wants to hear of an outage hears of it
			outage := *e
			outage.Event.Kind, outage.Rule = domain.AlertNoExecutor, e.OutageRule
			receivers, wanted = g.operators.receivers(&outage, b.Tenants[e.Event.TenantID])
		}
		if !wanted {
			continue
		}
		e.Receivers = receivers
		class := noun.ClassOf(&e.Event)
		switch {
		case e.Event.Kind.Platform():
			g.join(e, noun.PlatformIncidentKey(&e.Event), 0)
		case class == "":
			for _, r := range receivers {
				b.Direct = append(b.Direct, noun.Delivery{
					TenantID: e.Event.TenantID, EventID: e.Event.ID, Job: r.Job, Channel: r.Channel, Target: r.Target, State: noun.DeliveryPending,
				})
			}
		default:
			c := cause{e.Event.TenantID, e.Executor.ID, class, 0}
			if e.Rule != nil {
				c.rule = e.Rule.ID
			}
			byCause[c] = append(byCause[c], e)
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(byCause), cause.compare) {
		g.groupCause(c, byCause[c])
	}
	for _, i := range g.changed {
		i.Schedule(b.Now, g.policy, noun.Wishes{Fresh: true})
	}
}

// cause is what events of several jobs may have in common.
type cause struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	class    noun.AlertClass
	rule     domain.AlertRuleID // 0: none decides
}

// compare puts outages first: they explain others.
func (c cause) compare(o cause) int {
	outage := map[bool]int{true: -1}
	return cmp.Or(
		cmp.Compare(c.executor, o.executor), cmp.Compare(outage[c.class == noun.ClassUnavailable], outage[o.class == noun.ClassUnavailable]),
		cmp.Compare(c.class, o.class), cmp.Compare(c.rule, o.rule),
	)
}

// grouper is one call of group.
type grouper struct {
	b         *AlertBatch
	policy    *noun.TellPolicy
	operators Operators
	changed   []*noun.Incident
}

func (g *grouper) groupCause(c cause, events []*GroupedEvent) {
	if events = slices.DeleteFunc(events, g.isPart); len(events) == 0 {
		return
	}
	key := events[0].Rule.Key(noun.ExecutorIncidentKey(c.executor, c.class))
	of := g.b.Live[noun.IncidentKey{Tenant: c.tenant, Key: key}]
	if of == nil || of.State == noun.IncidentResolved {
		parts, storm := g.storm(c, events)
		if !storm {
			for _, e := range events {
				g.join(e, e.Rule.Key(noun.JobIncidentKey(e.Event.JobID, e.Event.Kind)), e.Event.JobID)
			}
			return
		}
		of = g.join(events[0], key, 0)
		events = events[1:]
		for _, part := range parts {
			of.Absorb(part, g.b.Now)
			g.changed = append(g.changed, part)
		}
	}
	for _, e := range events {
		g.join(e, key, 0)
	}
}

// down reports whether the event shows that no instance of its executor is online.
func (g *grouper) down(e *GroupedEvent) bool {
	return noun.Shows(&e.Event) && g.b.Offline[e.Executor.ID]
}

// isPart counts an event in the incident of its cause. The receivers of the event become
// receivers of that incident. An event that a rule calls critical stays by itself.
func (g *grouper) isPart(e *GroupedEvent) bool {
	if e.Rule != nil && e.Rule.Spec.Severity == noun.SeverityCritical {
		return false
	}
	switch noun.CauseOf(&e.Event) {
	case noun.BySchedulerBehind:
		g.count(e, g.parent(e, noun.SchedulerIncidentKey, noun.Incident{Kind: domain.AlertSchedulerBehind}, nil))
		return true
	case noun.ByExecutorDown:
		outage := g.b.Live[noun.IncidentKey{Tenant: e.Event.TenantID, Key: e.OutageKey}]
		lasts := outage != nil && outage.State != noun.IncidentResolved && outage.Kind == domain.AlertNoExecutor
		if e.Event.Kind == domain.AlertNoExecutor || !lasts && !g.down(e) {
			return false
		}
		if !lasts {
			outage = g.parent(e, e.OutageKey, noun.Incident{Kind: domain.AlertNoExecutor, Executor: e.Executor.ID}, e.OutageRule)
			g.absorb(outage)
		}
		g.count(e, outage)
		return true
	}
	return false
}

// parent finds or opens the incident of a cause, and says what it is now.
func (g *grouper) parent(e *GroupedEvent, key string, like noun.Incident, rule *noun.AlertRule) *noun.Incident {
	at := noun.IncidentKey{Tenant: e.Event.TenantID, Key: key}
	i := g.b.Live[at]
	if i == nil {
		i = &like
		i.ID, i.TenantID, i.Key, i.Live, i.Severity = g.b.NewID(), e.Event.TenantID, key, true, noun.SeverityWarning
		if rule != nil {
			i.Rule, i.Severity = rule.ID, rule.Spec.Severity
		}
		g.b.Live[at] = i
	}
	i.Kind = like.Kind
	return i
}

// absorb makes incidents of single jobs parts of an outage, unless a message has told of
// them.
func (g *grouper) absorb(outage *noun.Incident) {
	for _, i := range g.b.Recent[outage.Executor] {
		like := domain.AlertEvent{Kind: i.Kind}
		if noun.ClassOf(&like) == noun.ClassUnavailable && i.Live && i.Told == 0 && i.Severity != noun.SeverityCritical && g.b.Now.Sub(i.LastAt) <= stormWindow {
			outage.Absorb(i, g.b.Now)
			g.changed = append(g.changed, i)
		}
	}
}

// storm reports whether the events are more than single jobs' trouble, and returns
// the incidents of single jobs that nobody was told of yet.
func (g *grouper) storm(c cause, events []*GroupedEvent) (untold []*noun.Incident, storm bool) {
	jobs := map[domain.JobID]bool{}
	for _, e := range events {
		storm = storm || e.Event.Kind == domain.AlertNoExecutor // nobody has an instance
		jobs[e.Event.JobID] = true
	}
	for _, i := range g.b.Recent[c.executor] {
		like := domain.AlertEvent{Kind: i.Kind}
		if noun.ClassOf(&like) != c.class || i.Rule != c.rule || g.b.Now.Sub(i.LastAt) > stormWindow || !i.Live {
			continue
		}
		jobs[i.Job] = true
		if i.Told == 0 {
			untold = append(untold, i)
		}
	}
	return untold, storm || len(jobs) >= stormJobs
}

// join counts an event in the incident of a key, which it opens if there is none.
// job is 0 for one of several jobs.
func (g *grouper) join(e *GroupedEvent, key string, job domain.JobID) *noun.Incident {
	at := noun.IncidentKey{Tenant: e.Event.TenantID, Key: key}
	i := g.b.Live[at]
	if i == nil {
		i = &noun.Incident{
			ID: g.b.NewID(), TenantID: e.Event.TenantID, Key: key, Live: true, Kind: e.Event.Kind, Executor: e.Executor.ID, Job: job,
			Severity: noun.SeverityWarning,
		}
		if e.Rule != nil {
			i.Rule, i.Severity = e.Rule.ID, e.Rule.Spec.Severity
		}
		g.b.Live[at] = i
	}
	g.count(e, i)
	return i
}

// count adds an event to an incident.
func (g *grouper) count(e *GroupedEvent, i *noun.Incident) {
	i.Add(&e.Event, e.Job.Spec.Name, g.b.Now)
	e.Incident = i
	if !slices.Contains(g.changed, i) {
		g.changed = append(g.changed, i)
	}
}
