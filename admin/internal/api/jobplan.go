package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/resource/calendar"
	"github.com/carillon-sched/carillon/admin/internal/resource/script"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

const (
	// planOnce is how many jobs a plan reads at once.
	planOnce = 100
	// manyFires is how many jobs of a tenant may fire in one second without a warning.
	manyFires = 300
	// busySeconds is for how many seconds a plan counts fires, and busyWithin from when on it
	// looks at none.
	busySeconds = 20
	busyWithin  = 24 * time.Hour
)

// jobWork is what a step with a job needs. create has the job of a new one.
type jobWork struct {
	create store.NewJob
	update store.UpdateJobParams

	executor     domain.ExecutorID
	executorName string
	// next is the first fire time after the step, and was the one before; zero: none.
	next, was time.Time
}

// jobPlan is one plan of jobs. It belongs to one goroutine.
type jobPlan struct {
	jobDocuments // with the store names
	names        *remembering
	with         *web.PlanRequest
	now          time.Time
}

// Plan implements web.Planner. Jobs are read in parts, and what they name is read once.
func (d jobDocuments) Plan(ctx context.Context, id auth.Identity, docs []resource.Write, r *web.PlanRequest) (steps []resource.Step, wrong []error, err error) {
	p := d.newPlan(r)
	if err := p.know(r.New); err != nil {
		return nil, nil, err
	}
	for some := range slices.Chunk(docs, planOnce) {
		old, err := d.store.FindJobsByName(ctx, id.Tenant, domain.Collect(some, func(w *resource.Write) string { return w.Name }))
		if err != nil {
			return nil, nil, err
		}
		for i := range some {
			step, err := p.one(ctx, id, &some[i], old[some[i].Name])
			if err != nil && web.OurFault(err) {
				return nil, nil, err
			}
			steps, wrong = append(steps, step), append(wrong, err)
		}
	}
	return steps, wrong, p.warn(ctx, id, steps)
}

func (d jobDocuments) newPlan(r *web.PlanRequest) *jobPlan {
	p := &jobPlan{names: remember(d.store), with: r, now: d.now()}
	reading := *d.jobs
	reading.store = p.names
	p.jobDocuments = jobDocuments{&reading}
	return p
}

// know lets jobs name executors, calendars and scripts that the same request writes.
func (p *jobPlan) know(rows map[string]map[string]*resource.Row) error {
	for name, row := range rows[executorDocumentKind.Name] {
		if row != nil && row.Version == 0 {
			p.names.executors["name:"+name] = domain.Executor{ID: domain.ExecutorID(row.ID), TenantID: row.Tenant, Name: name, Version: 1}
		}
	}
	for name, row := range rows[calendar.Kind.Name] {
		c, err := calendar.Of(row)
		if err != nil {
			return err
		}
		c.Version = 0 // it is not stored yet: timing must not keep it as a version
		p.names.calendars[name] = c
	}
	for name, row := range rows["Script"] {
		s, err := script.Of(row)
		if err != nil {
			return err
		}
		p.names.scripts["name:"+name] = s
		p.names.scripts[scriptKey(domain.ScriptUse{ID: s.ID})] = s
	}
	return nil
}

// one plans a document. v is the job that has its name; nil: there is none.
func (p *jobPlan) one(ctx context.Context, id auth.Identity, doc *resource.Write, v *store.JobView) (resource.Step, error) {
	w, err := p.readSettings(id, doc, v)
	if err != nil {
		return resource.Step{}, err
	}
	var was domain.Job
	allow := catalogue.Lenient{Handler: p.with.AllowUnknownHandler, Input: p.with.AllowUnfitInput}
	if v != nil {
		was = v.Job
		// The job has this handler already: a document with the same one is not the mistake.
		same := w.Handler == v.Spec.Handler && (w.Executor.Name == v.ExecutorName || w.Executor.ID == v.Executor.String())
		allow.Handler = allow.Handler || same
		allow.Input = allow.Input || same && bytes.Equal(w.Input, v.Spec.Input)
	}
	spec, executor, err := p.readJob(ctx, id, &w, was, allow)
	if err != nil {
		return resource.Step{}, belowSpec(err)
	}
	if v == nil {
		return p.create(id, &w, spec, executor)
	}
	return p.update(ctx, id, &w, spec, executor, v)
}

func (p *jobPlan) create(id auth.Identity, w *JobWrite, spec domain.JobSpec, executor domain.Executor) (resource.Step, error) {
	step := resource.Step{Action: resource.ActionCreate, Name: spec.Name}
	job, err := p.freshJob(id, w, spec, executor.ID)
	if err != nil {
		return step, err
	}
	work := &jobWork{create: job, executor: executor.ID, executorName: executor.Name}
	if fires := p.fires(job.ID, &spec); len(fires) > 0 {
		step.Fires = &resource.Fires{After: fires, Paused: job.State == domain.JobPaused}
		if job.State == domain.JobEnabled {
			work.next = fires[0]
		}
	}
	step.Work = work
	p.warnNever(&step, &spec)
	return step, nil
}

func (p *jobPlan) update(ctx context.Context, id auth.Identity, w *JobWrite, spec domain.JobSpec, executor domain.Executor, v *store.JobView) (resource.Step, error) {
	step := resource.Step{Action: resource.ActionSame, Name: spec.Name, ID: int64(v.ID), Version: v.Revision}
	revision, err := p.newRevision(id, *v, v.Revision, w, spec, executor.ID)
	locked := domain.Is(err, domain.CodeOwnedByCode)
	if locked {
		step.Refused, revision.Spec = err, spec
	} else if err != nil {
		return step, err
	}
	after := *v
	after.Spec, after.ExecutorName = revision.Spec, executor.Name
	if step.Changes, err = p.compare(ctx, id, v, &after, w); err != nil {
		return step, err
	}
	if len(step.Changes) > 0 {
		step.Action = resource.ActionUpdate
		p.decideOwner(&step, v)
	}
	work := &jobWork{update: revision, executor: executor.ID, executorName: executor.Name}
	p.compareFires(&step, work, v, &revision.Spec)
	step.Work = work
	return step, nil
}

// compare lists what a document changes. A new secret has no value in it.
func (p *jobPlan) compare(ctx context.Context, id auth.Identity, v, after *store.JobView, w *JobWrite) ([]resource.Change, error) {
	sides := make([]map[string]any, 2)
	for i, side := range []*store.JobView{v, after} {
		settings, err := p.settings(ctx, id, p.names, side)
		if err != nil {
			return nil, err
		}
		labels := map[string]any{}
		for key, value := range side.Spec.Labels {
			labels[key] = value
		}
		sides[i] = map[string]any{"labels": labels, "spec": settings}
	}
	changes, err := resource.Compare(sides[0], sides[1])
	if err == nil && w.Alert != nil && w.Alert.WebhookSecret != "" && !slices.ContainsFunc(changes, func(c resource.Change) bool { return c.Path == "spec.alert.webhookSecret" }) {
		changes = append(changes, resource.Change{Path: "spec.alert.webhookSecret", After: json.RawMessage(`"` + web.Hidden + `"`)})
	}
	return changes, err
}

// decideOwner refuses to change a job that code decides about, or says that it does no longer.
func (p *jobPlan) decideOwner(step *resource.Step, v *store.JobView) {
	d := v.Declared
	if step.Refused != nil || d.By == 0 || d.Gone || v.Source != domain.SourceCode || d.LocksConsole() || d.Ownership == domain.OwnedByConsole {
		return
	}
	if !p.with.TakeOver {
		step.Refused = domain.Errorf(domain.CodeOwnedByCode, "the code of the executor %q decides about the job %q: leave it out, or take it over (takeOver, --take-over)", v.ExecutorName, v.Spec.Name)
		return
	}
	step.Warnings = append(step.Warnings, resource.Warning{Code: "takes_over", Text: fmt.Sprintf("the job follows this document from now on, and the code of the executor %q no longer", v.ExecutorName)})
}

// compareFires adds next fire times if they change.
func (p *jobPlan) compareFires(step *resource.Step, work *jobWork, v *store.JobView, spec *domain.JobSpec) {
	if v.State == domain.JobEnabled && v.NextFireAt.Before(domain.Never) {
		work.was, work.next = v.NextFireAt, v.NextFireAt
	}
	sameDays := slices.EqualFunc(v.Spec.Schedule.Calendars, spec.Schedule.Calendars, func(a, b domain.CalendarUse) bool {
		return a.ID == b.ID && a.Version == b.Version
	})
	inSchedule := slices.ContainsFunc(step.Changes, func(c resource.Change) bool { return strings.HasPrefix(c.Path, "spec.schedule") })
	if sameDays && !inSchedule {
		return
	}
	before, after := p.fires(v.ID, &v.Spec), p.fires(v.ID, spec)
	if slices.EqualFunc(before, after, time.Time.Equal) {
		return
	}
	step.Fires = &resource.Fires{Before: before, After: after, Paused: v.State == domain.JobPaused}
	if work.next = (time.Time{}); v.State == domain.JobEnabled && len(after) > 0 {
		work.next = after[0]
	}
	p.warnNever(step, spec)
}

// fires are the next fire times with a run.
func (p *jobPlan) fires(job domain.JobID, spec *domain.JobSpec) (out []time.Time) {
	compiled, err := timing.Compile(&spec.Schedule, timing.Seed(job))
	if err != nil {
		return nil // it was checked; a stored one of before may be wrong
	}
	for _, o := range compiled.Preview(p.now, resource.FiresShown) {
		if o.Excluded == nil {
			out = append(out, o.At)
		}
	}
	return out
}

func (p *jobPlan) warnNever(step *resource.Step, spec *domain.JobSpec) {
	if spec.Schedule.Kind != domain.ScheduleNone && (step.Fires == nil || len(step.Fires.After) == 0) {
		step.Warnings = append(step.Warnings, resource.Warning{Code: "never_fires", Text: "the schedule has no fire time from now on"})
	}
}

// warn adds what concerns several jobs.
func (p *jobPlan) warn(ctx context.Context, id auth.Identity, steps []resource.Step) error {
	online := onlineCounter{from: p.names}
	planned := map[int64][]int{} // steps that fire first in a second
	for i := range steps {
		work, is := steps[i].Work.(*jobWork)
		if !is || steps[i].Action == resource.ActionSame {
			continue
		}
		n, err := online.of(ctx, id.Tenant, work.executor)
		if err != nil {
			return err
		}
		if n == 0 {
			steps[i].Warnings = append(steps[i].Warnings, resource.Warning{Code: "no_instance", Text: fmt.Sprintf("the executor %q has no instance online", work.executorName)})
		}
		if !work.next.IsZero() && work.next.Before(p.now.Add(busyWithin)) {
			planned[work.next.Unix()] = append(planned[work.next.Unix()], i)
		}
	}
	return p.warnMany(ctx, id, steps, planned)
}

// warnMany counts the fires of the seconds with the most planned ones. Of stored jobs it counts
// those whose next fire time is in such a second, and stops when there are too many.
func (p *jobPlan) warnMany(ctx context.Context, id auth.Identity, steps []resource.Step, planned map[int64][]int) error {
	seconds := slices.SortedFunc(maps.Keys(planned), func(a, b int64) int {
		return cmp.Or(cmp.Compare(len(planned[b]), len(planned[a])), cmp.Compare(a, b))
	})
	seconds = seconds[:min(len(seconds), busySeconds)]
	stored, err := p.store.CountFires(ctx, id.Tenant, seconds, manyFires+len(steps)+1)
	if err != nil {
		return err
	}
	for _, at := range seconds {
		n := stored[at] + len(planned[at])
		for i := range steps { // those that change and fire then already are in both numbers
			if work, is := steps[i].Work.(*jobWork); is && steps[i].Action == resource.ActionUpdate && work.was.Unix() == at {
				n--
			}
		}
		if n > manyFires {
			first := &steps[planned[at][0]]
			first.Warnings = append(first.Warnings, resource.Warning{Code: "many_fires", Text: fmt.Sprintf(
				"%d jobs of the tenant, %d of them of this plan, fire at %s: spread them with jitter or other minutes", n, len(planned[at]), web.Instant(time.Unix(at, 0)))})
		}
	}
	return nil
}

// PlanDelete implements web.Planner.
func (d jobDocuments) PlanDelete(ctx context.Context, id auth.Identity, names []string, ids []int64, _ resource.Going) (steps []resource.Step, err error) {
	found, err := d.store.FindJobsByName(ctx, id.Tenant, names)
	if err != nil {
		return nil, err
	}
	byID, err := d.store.FindJobsByID(ctx, id.Tenant, domain.Collect(ids, func(n *int64) domain.JobID { return domain.JobID(*n) }))
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		byID = append(byID, *found[name])
	}
	for i := range byID {
		v := &byID[i]
		step := resource.Step{Action: resource.ActionDelete, Name: v.Spec.Name, ID: int64(v.ID), Version: v.Revision, Work: &jobWork{}}
		if v.Declared.LocksConsole() {
			step.Refused = errOwnedByCode(*v, "remove the declaration there, or pause the job here")
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// Do implements web.Planner. Many jobs are written in one transaction.
func (d jobDocuments) Do(ctx context.Context, id auth.Identity, steps []*resource.Step) []error {
	errs := make([]error, len(steps))
	ctx = domain.WithAudit(ctx, domain.AuditOf(ctx).Each())
	var created, changed []int // in steps
	for i, step := range steps {
		if step.Action == resource.ActionCreate {
			created = append(created, i)
		} else {
			changed = append(changed, i)
		}
	}
	jobs := domain.Collect(created, func(i *int) store.NewJob { return steps[*i].Work.(*jobWork).create })
	for i, err := range d.store.CreateJobs(ctx, id.Tenant, jobs) {
		step := steps[created[i]]
		if errs[created[i]] = err; err == nil {
			step.ID, step.Version = int64(jobs[i].ID), 1
		}
	}
	ids := domain.Collect(changed, func(i *int) domain.JobID { return domain.JobID(steps[*i].ID) })
	change := func(i int, job *store.LockedJob) error { return d.change(id, steps[changed[i]], job) }
	for i, err := range d.store.ChangeJobs(ctx, id.Tenant, ids, change) {
		step := steps[changed[i]]
		if errs[changed[i]] = err; err == nil && step.Action == resource.ActionUpdate {
			step.Version++
		}
	}
	d.jobsChanged()
	d.log.Info("jobs applied", "tenant_id", id.Tenant, "created", len(created), "changed", len(changed), "refused", refused(errs), "by", id.Actor())
	return errs
}

// change changes or deletes a job that is locked.
func (d jobDocuments) change(id auth.Identity, step *resource.Step, job *store.LockedJob) error {
	if step.Action == resource.ActionUpdate {
		return job.Update(step.Work.(*jobWork).update)
	}
	return job.SetState(store.SetJobStateParams{
		Tenant: id.Tenant, ID: job.ID, State: domain.JobDeleted, IfRevision: step.Version, By: id.Actor(), Next: timing.Next, Plan: d.plan,
	})
}

func refused(errs []error) (n int) {
	for _, err := range errs {
		if err != nil {
			n++
		}
	}
	return n
}
