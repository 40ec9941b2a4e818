package declare

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/proto"
)

// Options are what a Declarer needs.
type Options struct {
	Store Store
	NewID func() int64
	// Plan takes back and plans fires of a job whose trigger changes.
	Plan store.PlanFunc
	// Changed is called after a commit that changed triggers. It must not block.
	Changed func()
	Now     func() time.Time
	Logger  *slog.Logger
	// Callback reads a callback to another executor, an address or a connection, which the code
	// of an executor declares. at is its place, and was is the callback that it replaces.
	Callback func(ctx context.Context, of store.ExecutorKey, at string, to *proto.Callback, was domain.FollowUp) (domain.FollowUp, error)
	// Audited: changes leave entries in the audit log.
	Audited bool
}

// Declarer makes jobs from declarations in code (docs/adr/0023). Of the present builds of an
// executor, the newest one that declares a job decides about it. It is safe for concurrent
// use.
type Declarer struct {
	opt     Options
	log     *slog.Logger
	applied applied
}

// New returns a Declarer. It starts nothing.
func New(o Options) *Declarer {
	return &Declarer{
		opt: o, log: o.Logger.With("component", "declarations"),
		applied: applied{keep: SweepEvery, turn: make(chan struct{}, reconcileAtOnce)},
	}
}

const declaredBy = "application"

// declared is a job as the newest build that declares it has it.
type declared struct {
	handler *proto.Handler
	job     *proto.JobDeclaration
	terms   domain.Declared
	hash    string
	builds  []string // that declare it so: the newest, and older ones that agree
	// silenced: no build that has it may declare jobs, or all that have it are held
	// back.
	silenced bool
	held     bool // held back, see holdBack
}

// planned is what a declaration is to do.
type planned struct {
	*declared
	step domain.DeclareStep
	job  *domain.Job // the one that is there; nil: none
	spec domain.JobSpec
	err  error // why it is not taken
	// written: with the others of a strict build, see declareStrict.
	written bool
}

// look says what one declaration is to do; it writes nothing. all are the jobs that the present
// builds declare, by name.
func (d *Declarer) look(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, w *declared, all map[string]*declared, known map[string]bool) (p planned) {
	p.declared = w
	if p.err = domain.CheckDeclaration(w.terms); p.err != nil {
		return p
	}
	if p.err = checkNames(w); p.err != nil {
		return p
	}
	found, err := d.find(ctx, tenant, executor, w.job.Name, all)
	deleted := false
	if domain.Is(err, domain.CodeNotFound) {
		deleted, err = d.opt.Store.WasDeclared(ctx, tenant, executor, w.job.Name)
	} else {
		p.job = &found.Job
	}
	if p.err = err; err != nil {
		return p
	}
	if p.job != nil && known != nil && p.job.Declared.By == executor && p.job.Declared.Build != "" && !known[p.job.Declared.Build] {
		p.err = errNewerBuild
		return p
	}
	if p.job != nil {
		w.terms = p.job.Follow(w.terms)
	}
	decl := domain.Declaration{Executor: executor, Declared: w.terms, Hash: w.hash}
	p.step, p.err = domain.DecideDeclaration(decl, p.job, found.ExecutorName, deleted)
	if p.step == domain.DeclareRestore {
		p.spec, p.err = d.replaced(ctx, tenant, p.job)
		return p
	}
	if p.err != nil || p.step == domain.DeclareNothing || p.step == domain.DeclareMark {
		return p
	}
	var was domain.JobSpec
	if p.job != nil {
		was = p.job.Spec
	}
	k := store.ExecutorKey{Tenant: tenant, Executor: executor}
	if p.spec, p.err = d.specOf(ctx, k, w.handler, w.job, &was); p.err == nil {
		p.err = d.checkCallbacks(ctx, tenant, executor, &p.spec)
	}
	if p.err == nil && p.job != nil && p.step != domain.DeclareCreate {
		p.err = keepConsoles(&p.spec, &p.job.Spec)
	}
	return p
}

// writesOf returns what makes a job what its declaration says, and what is logged when it
// is written. An error is a reason why it is not taken. There may be writes beside it.
func (d *Declarer) writesOf(tenant domain.TenantID, executor domain.ExecutorID, p planned) (writes []store.DeclaredWrite, log func(), err error) {
	w, step, job, spec := p.declared, p.step, p.job, p.spec
	none := func() {}
	switch {
	case p.err != nil && step == domain.DeclareMark:
		return d.mark(tenant, job, w.terms, ""), none, p.err
	case p.err != nil:
		return nil, none, p.err
	case step == domain.DeclareNothing:
		return nil, none, nil
	case step == domain.DeclareMark:
		return d.mark(tenant, job, w.terms, w.hash), none, nil
	case step == domain.DeclareRestore:
		return d.restore(tenant, job, w, spec)
	case step == domain.DeclareCreate:
		writes, log = d.create(tenant, executor, w, spec)
	case job != nil && sameSpec(&spec, &job.Spec) && (step == domain.DeclarePropose || job.Source == domain.SourceCode && spec.CodeSays.Same(job.Spec.CodeSays)):
		return d.mark(tenant, job, w.terms, w.hash), none, nil
	case step == domain.DeclarePropose:
		return d.propose(tenant, executor, job, w, spec), none, nil
	default:
		writes, log = d.update(tenant, job, w, spec)
	}
	return writes, log, nil
}

// declare makes one job what its declaration says. An error is a reason why it is not
// taken.
func (d *Declarer) declare(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, p planned) error {
	writes, log, refused := d.writesOf(tenant, executor, p)
	switch err := d.write(ctx, store.ExecutorKey{Tenant: tenant, Executor: executor}, writes); {
	case domain.Is(err, domain.CodeRevisionMismatch):
		return nil // another instance, or somebody in the console, was quicker
	case domain.Is(err, domain.CodeConflict) && p.step == domain.DeclareCreate:
		return d.taken(ctx, tenant, executor, p.declared)
	case err != nil:
		return err
	}
	if len(writes) > 0 {
		log()
		d.opt.Changed()
	}
	return refused
}

// taken is called if the name is taken at this moment. Another instance of the application or
// the console may have made the job. If another executor has, the declaration is refused.
func (d *Declarer) taken(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, w *declared) error {
	switch found, err := d.opt.Store.FindJobByName(ctx, tenant, w.job.Name); {
	case domain.Is(err, domain.CodeNotFound):
		return domain.Errorf(domain.CodeUnavailable, "the job %q was made and deleted at this moment; the next registration tries again", w.job.Name)
	case err != nil:
		return err
	case found.Executor != executor:
		return domain.JobNameTaken(w.job.Name, found.ExecutorName)
	}
	return nil
}

// checkNames refuses what the API refuses: nobody could edit such a job, or find it.
func checkNames(w *declared) error {
	if wrong := domain.WrongJobName(w.job.Name); wrong != "" {
		return domain.Invalid("job.name", "%s", wrong)
	}
	if wrong := domain.WrongName(w.handler.Name, domain.MaxNameLength); wrong != "" {
		return domain.Invalid("job.handler", "%s", wrong)
	}
	return nil
}

// find looks for the job of a declaration: the one that was declared by this name,
// whatever a person has renamed it to, or else the one that has the name.
func (d *Declarer) find(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string, all map[string]*declared) (store.JobView, error) {
	found, err := d.opt.Store.FindDeclaredJob(ctx, tenant, executor, name)
	if !domain.Is(err, domain.CodeNotFound) {
		return found, err
	}
	found, err = d.opt.Store.FindJobByName(ctx, tenant, name)
	if err != nil {
		return found, err
	}
	if was := found.DeclaredName(); found.Declared.By == executor && was != name && all[was] != nil {
		return found, domain.Errorf(domain.CodeConflict, "the job %q is the one that the code declares as %q, and somebody has renamed it: "+
			"give this one another name, or rename that one", name, was)
	}
	return found, nil
}

// propose asks; a job that belonged to the code until now belongs to the
// console from here on.
func (d *Declarer) propose(tenant domain.TenantID, executor domain.ExecutorID, job *domain.Job, w *declared, spec domain.JobSpec) []store.DeclaredWrite {
	writes := []store.DeclaredWrite{{Propose: &domain.Proposal{
		ID: d.opt.NewID(), TenantID: tenant, Executor: executor, Name: w.job.Name, Hash: w.hash,
		Build: w.terms.Build, Version: w.terms.Version, Removal: w.terms.Removal, Spec: spec,
	}}}
	if job == nil || job.Declared.Ownership == w.terms.Ownership && job.Declared.By == executor && !job.Declared.Gone {
		return writes
	}
	return append(writes, d.mark(tenant, job, w.terms, "")...)
}

// keepConsoles keeps of the job what code does not say.
func keepConsoles(spec, old *domain.JobSpec) error {
	if s, was := &spec.Schedule, old.Schedule; s.Kind == was.Kind && s.Every == was.Every && s.StartAt.Equal(was.StartAt) {
		s.Anchor = was.Anchor // a change of something else does not shift a fixed rate
	}
	return spec.KeepConsoles(old)
}

// sameSpec compares settings as the store would write them; what a calendar says is
// its own and not the job's.
func sameSpec(a, b *domain.JobSpec) bool {
	texts := [2]string{}
	for i, s := range []domain.JobSpec{*a, *b} {
		s.CodeSays = nil
		s.Schedule.Calendars = slices.Clone(s.Schedule.Calendars)
		for j := range s.Schedule.Calendars {
			s.Schedule.Calendars[j].Content = nil
		}
		raw, err := json.Marshal(s)
		if err != nil {
			return false
		}
		texts[i] = string(raw)
	}
	return texts[0] == texts[1]
}

// mark notes who declares the job, and wakes it when it was paused for being
// declared by nobody. An empty hash: the declaration is not taken.
func (d *Declarer) mark(tenant domain.TenantID, job *domain.Job, terms domain.Declared, hash string) []store.DeclaredWrite {
	return append(d.wake(tenant, job), store.DeclaredWrite{Mark: &store.DeclaredMark{Job: job.ID, Declared: terms, Hash: hash}})
}

func (d *Declarer) wake(tenant domain.TenantID, job *domain.Job) []store.DeclaredWrite {
	if !job.Declared.PausedGone || job.State != domain.JobPaused {
		return nil
	}
	return []store.DeclaredWrite{{State: &store.SetJobStateParams{
		Tenant: tenant, ID: job.ID, State: domain.JobEnabled, By: declaredBy, Next: timing.Next, Plan: d.opt.Plan,
	}}}
}

func (d *Declarer) update(tenant domain.TenantID, job *domain.Job, w *declared, spec domain.JobSpec) (writes []store.DeclaredWrite, log func()) {
	return append(d.wake(tenant, job), store.DeclaredWrite{Update: &store.UpdateJobParams{
			Tenant: tenant, ID: job.ID, IfRevision: job.Revision, Spec: spec, Source: domain.SourceCode, DeclarationHash: w.hash,
			Declared: &w.terms, By: declaredBy, Next: timing.Next, Plan: d.opt.Plan,
		}}), func() {
			if w.terms.Replaced != 0 && w.terms.Replaced == job.Revision {
				d.log.Warn("code that owns a job has replaced an edit of a person's", "tenant_id", tenant, "job_id", job.ID, "job", w.job.Name, "edited_by", job.UpdatedBy, "revision", job.Revision, "version", w.terms.Version)
			}
			d.log.Info("job follows its changed declaration", "tenant_id", tenant, "job_id", job.ID, "job", w.job.Name, "version", w.terms.Version)
		}
}

// replaced reads what a person had made of a job before code replaced it.
func (d *Declarer) replaced(ctx context.Context, tenant domain.TenantID, job *domain.Job) (spec domain.JobSpec, err error) {
	found, err := d.opt.Store.ListRevisions(ctx, store.ListRevisionsParams{Tenant: tenant, Job: job.ID, Before: job.Declared.Replaced + 1, Limit: 1})
	if err == nil && len(found.Items) == 0 {
		err = domain.Errorf(domain.CodeNotFound, "the job %q has no revision %d any more", job.Spec.Name, job.Declared.Replaced)
	}
	if err != nil {
		return spec, err
	}
	return found.Items[0].Spec, nil
}

// restore gives a job back to the console, as a person had made it. No declaration is
// applied to it.
func (d *Declarer) restore(tenant domain.TenantID, job *domain.Job, w *declared, spec domain.JobSpec) (writes []store.DeclaredWrite, log func(), err error) {
	writes = append(d.wake(tenant, job), store.DeclaredWrite{Update: &store.UpdateJobParams{
		Tenant: tenant, ID: job.ID, IfRevision: job.Revision, Spec: spec, Source: domain.SourceConsole,
		Declared: &w.terms, By: declaredBy, Next: timing.Next, Plan: d.opt.Plan,
	}})
	if w.terms.Ownership == domain.OwnedUntilEdited {
		err = domain.ErrEdited(job)
	}
	return writes, func() {
		d.log.Info("job has the edit again that code had replaced", "tenant_id", tenant, "job_id", job.ID, "job", w.job.Name, "revision", job.Declared.Replaced, "version", w.terms.Version)
	}, err
}

func (d *Declarer) create(tenant domain.TenantID, executor domain.ExecutorID, w *declared, spec domain.JobSpec) (writes []store.DeclaredWrite, log func()) {
	id := domain.JobID(d.opt.NewID())
	now := d.opt.Now()
	return []store.DeclaredWrite{{Create: &store.NewJob{Job: domain.Job{
			ID: id, TenantID: tenant, Executor: executor, Partition: domain.PartitionOf(id),
			State: domain.JobEnabled, Source: domain.SourceCode, DeclarationHash: w.hash, Declared: w.terms, Revision: 1,
			Spec: spec, CreatedAt: now, UpdatedAt: now, CreatedBy: declaredBy, UpdatedBy: declaredBy,
		}, Next: timing.Next}}}, func() {
			d.log.Info("job declared by the application", "tenant_id", tenant, "job_id", id, "job", w.job.Name)
		}
}

func declarationHash(handler string, decl *proto.JobDeclaration) (string, error) {
	raw, err := gproto.MarshalOptions{Deterministic: true}.Marshal(decl)
	if err != nil {
		return "", fmt.Errorf("hash declaration: %w", err)
	}
	sum := sha256.Sum256(append([]byte(handler+"\x00"), raw...))
	return hex.EncodeToString(sum[:16]), nil
}

// specOf reads a declaration of the executor k. was has the callbacks that it replaces.
func (d *Declarer) specOf(ctx context.Context, k store.ExecutorKey, h *proto.Handler, decl *proto.JobDeclaration, was *domain.JobSpec) (domain.JobSpec, error) {
	spec := domain.JobSpec{
		Name: decl.Name, Description: cmp.Or(decl.Description, h.Description), Handler: h.Name, Input: decl.Input,
		Schedule:    domain.ScheduleSpec{Kind: domain.ScheduleNone, Zone: cmp.Or(decl.Zone, "UTC"), Dialect: cmp.Or(decl.Dialect, "auto")},
		Misfire:     domain.Misfire{Policy: domain.MisfirePolicy(cmp.Or(decl.Misfire, string(domain.MisfireSkip)))},
		Routing:     domain.Routing(cmp.Or(decl.Routing, string(domain.RouteRoundRobin))),
		Parallelism: int(decl.Parallelism), MaxWaiting: int(decl.MaxWaiting), Priority: int(decl.Priority),
		Retry:   declaredRetry(decl),
		Timeout: time.Duration(decl.TimeoutMs) * time.Millisecond,
		OnLost:  domain.OnLost(cmp.Or(decl.OnLost, string(domain.OnLostAuto))),
		Owner:   domain.Owner{Email: decl.OwnerEmail},
		Labels:  decl.Labels, Alert: declaredAlert(decl.Alert), CodeSays: codeSays(decl),

		DispatchTimeout: time.Duration(decl.DispatchTimeoutMs) * time.Millisecond,
	}
	if len(decl.Input) > 0 && !proto.ValidJSON(decl.Input) {
		return spec, domain.Invalid("job.input", "must be JSON in UTF-8")
	}
	if p := decl.RetryBackoffPermille; p != 0 && p < 1000 {
		return spec, domain.Invalid("job.retry.backoff", "must be from 1 to 100")
	}
	if err := declaredRouting(&spec, decl); err != nil {
		return spec, err
	}
	spec.Misfire.Threshold = time.Duration(decl.MisfireThresholdMs) * time.Millisecond
	spec.Misfire.Window = time.Duration(decl.MisfireWindowMs) * time.Millisecond
	spec.Misfire.MaxRuns = int(decl.MisfireMaxRuns)
	spec.Sharding = declaredSharding(decl.Sharding)
	err := declaredSchedule(&spec.Schedule, decl, d.opt.Now())
	if err != nil {
		return spec, err
	}
	spec.Blocking = domain.Blocking(cmp.Or(decl.Blocking, string(domain.DefaultBlocking(spec.Schedule.Kind))))
	if spec.Schedule.Calendars, err = d.declaredCalendars(ctx, k.Tenant, decl.Calendars); err != nil {
		return spec, err
	}
	if spec.OnSuccess, err = d.callback(ctx, k, "body.onSuccess", decl.OnSuccess, decl.SuccessTo, was.OnSuccess); err != nil {
		return spec, err
	}
	if spec.OnFailure, err = d.callback(ctx, k, "body.onFailure", decl.OnFailure, decl.FailureTo, was.OnFailure); err != nil {
		return spec, err
	}
	if domain.IsAgentHandler(spec.Handler) {
		return spec, domain.Invalid("job.handler", "handlers of agents take no jobs that are declared in code")
	}
	if err := domain.CheckSpec(&spec); err != nil {
		return spec, declarationFault(err)
	}
	return spec, declarationFault(checkSchedule(spec.Schedule))
}

// callback reads what follows a run. If to is set, own is a text for older admins.
func (d *Declarer) callback(ctx context.Context, k store.ExecutorKey, at, own string, to *proto.Callback, was domain.FollowUp) (domain.FollowUp, error) {
	if to == nil {
		return domain.FollowUp{Handler: own}, nil
	}
	f, err := d.opt.Callback(ctx, k, at, to, was)
	return f, declarationFault(err)
}

// checkCallbacks refuses callbacks and hooks that no handler of the executor is,
// as the API does. What its builds register is known before.
func (d *Declarer) checkCallbacks(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, spec *domain.JobSpec) error {
	uses := [][2]string{
		{"job.onSuccess", spec.OnSuccess.Own()}, {"job.onFailure", spec.OnFailure.Own()},
		{"job.sharding.before", spec.Sharding.Before}, {"job.sharding.after", spec.Sharding.After},
	}
	uses = slices.DeleteFunc(uses, func(use [2]string) bool { return use[1] == "" })
	if len(uses) == 0 {
		return nil
	}
	for _, use := range uses {
		_, err := d.opt.Store.FindHandler(ctx, tenant, executor, use[1])
		if err != nil && !domain.Is(err, domain.CodeNotFound) {
			return err
		}
		if err != nil {
			message := fmt.Sprintf("the executor has no handler %q: register it; a callback may also name another executor that has it", use[1])
			return &domain.Error{
				Code: domain.CodeUnknownHandler, Message: use[0] + ": " + message,
				Fields: []domain.FieldError{{Location: use[0], Message: message, Value: use[1], Position: -1}},
			}
		}
	}
	return nil
}

// callsOf reads what the declaration of a handler says of its calls
// (domain.Handler.Calls). What is not valid is a reason why it is not taken: a
// job that is declared beside the handler is not taken either then.
func (d *Declarer) callsOf(ctx context.Context, k store.ExecutorKey, h *proto.Handler) (*domain.JobSpec, error) {
	if h.Calls == nil {
		return nil, nil
	}
	decl := gproto.CloneOf(h.Calls)
	decl.Name = h.Name
	was := &domain.JobSpec{}
	if decl.SuccessTo != nil || decl.FailureTo != nil {
		known, err := d.opt.Store.FindHandler(ctx, k.Tenant, k.Executor, h.Name)
		if err != nil && !domain.Is(err, domain.CodeNotFound) {
			return nil, err
		}
		if known.Calls != nil {
			was = known.Calls
		}
	}
	all, err := d.specOf(ctx, k, h, decl, was)
	if err != nil {
		return nil, err
	}
	if decl.MaxAttempts == 0 {
		if all.Retry.MaxAttempts = 0; declaredRetry(decl) == declaredRetry(&proto.JobDeclaration{}) {
			all.Retry = domain.Retry{}
		}
	}
	return &domain.JobSpec{
		Handler: h.Name, Timeout: all.Timeout, DispatchTimeout: all.DispatchTimeout, Retry: all.Retry, OnLost: all.OnLost, OnSuccess: all.OnSuccess, OnFailure: all.OnFailure,
		Routing: all.Routing, RoutingKey: all.RoutingKey, Require: all.Require, Prefer: all.Prefer, SendRetry: all.SendRetry,
		Blocking: all.Blocking, Parallelism: all.Parallelism, Priority: all.Priority,
	}, nil
}

func declaredRetry(decl *proto.JobDeclaration) domain.Retry {
	out := domain.DefaultRetry
	out.MaxAttempts = max(1, int(decl.MaxAttempts))
	if decl.RetryDelayMs != 0 {
		out.Delay = time.Duration(decl.RetryDelayMs) * time.Millisecond
	}
	if decl.RetryBackoffPermille != 0 {
		out.Backoff = float64(decl.RetryBackoffPermille) / 1000
	}
	if out = out.Bound(); decl.MaxRetryDelayMs != 0 {
		out.MaxDelay = time.Duration(decl.MaxRetryDelayMs) * time.Millisecond
	}
	return out
}

// declaredRouting reads which instances get the runs, and how often they are sent.
func declaredRouting(spec *domain.JobSpec, decl *proto.JobDeclaration) (err error) {
	spec.RoutingKey = decl.RoutingKey
	spec.SendRetry = domain.SendRetry{
		MaxSends: int(decl.MaxSends), Backoff: float64(decl.SendBackoffPermille) / 1000, Delay: time.Duration(decl.SendDelayMs) * time.Millisecond,
	}
	if spec.Require, err = domain.ParseSelector(decl.RequireLabels); err != nil {
		return domain.Invalid("job.requireLabels", "%s", err.Error())
	}
	if spec.Prefer, err = domain.ParseSelector(decl.PreferLabels); err != nil {
		return domain.Invalid("job.preferLabels", "%s", err.Error())
	}
	return nil
}
