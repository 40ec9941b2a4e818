package declare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// SweepEvery is the time between two calls of Sweep. A build that has left for good (after
// domain.BuildGrace) is noticed that late. Its jobs and handlers then become what the other
// builds say.
const SweepEvery = 15 * time.Second

// reconcileBatch is how many executors one round looks after.
const reconcileBatch = 100

// reconcileAtOnce is how many builds are looked at at once when their instances
// register: the other connections are for those that are in.
const reconcileAtOnce = 2

// errNewerBuild: a build that this node had not seen has decided meanwhile.
var errNewerBuild = errors.New("a build that is newer than the list has declared the job")

// applied remembers what came of builds that have registered a moment ago, so
// that a fleet which connects at once asks the database once per node.
type applied struct {
	// fixed after construction
	keep time.Duration // 0 = nothing is remembered
	turn chan struct{} // one token per build that is looked at

	mu     sync.Mutex
	builds map[buildKey]appliedBuild // guarded by mu
}

type buildKey struct {
	store.ExecutorKey
	digest string
}

type appliedBuild struct {
	at      time.Time
	notices []*proto.Notice
}

// refusal is a notice, and the builds that declare what it is about.
type refusal struct {
	notice *proto.Notice
	builds []string
}

// noticesFor are those about what a build declares itself: what another version
// of the application declares is no fault of its own.
func noticesFor(build string, refused []refusal) []*proto.Notice {
	var out []*proto.Notice
	for _, r := range refused {
		if slices.Contains(r.builds, build) {
			out = append(out, r.notice)
		}
	}
	return out
}

// maxApplied bounds what is remembered.
const maxApplied = 10_000

func (a *applied) find(k buildKey, now time.Time) ([]*proto.Notice, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, known := a.builds[k]
	return b.notices, known && now.Sub(b.at) < a.keep
}

// enter waits until it is this one's turn to look.
func (a *applied) enter(ctx context.Context) (leave func(), err error) {
	select {
	case a.turn <- struct{}{}:
		return func() { <-a.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (a *applied) note(k buildKey, b appliedBuild) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.builds == nil || len(a.builds) >= maxApplied {
		a.builds = map[buildKey]appliedBuild{}
	}
	a.builds[k] = b
}

// Declare implements gateway.Declarer: an instance of the build has registered.
func (d *Declarer) Declare(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, build string) []*proto.Notice {
	k := buildKey{store.ExecutorKey{Tenant: tenant, Executor: executor}, build}
	if notices, ok := d.applied.find(k, time.Now()); ok {
		return notices
	}
	leave, err := d.applied.enter(ctx)
	var notices []*proto.Notice
	now := time.Now()
	if err == nil {
		defer leave()
		if notices, ok := d.applied.find(k, now); ok { // others of its build came with it
			return notices
		}
		var refused []refusal
		refused, err = d.reconcile(ctx, tenant, executor)
		notices = noticesFor(build, refused)
	}
	if err != nil {
		d.log.Warn("declarations were not applied; the next registration tries again", "tenant_id", tenant, "executor_id", executor, "err", err)
		if domain.Is(err, domain.CodeQuotaExceeded) { // it stays so until the application, or its builds, are other ones
			return append(notices, &proto.Notice{Code: string(domain.CodeQuotaExceeded), Message: "declarations of this executor are not applied: " + err.Error()})
		}
		return append(notices, &proto.Notice{
			Code: string(domain.CodeUnavailable), Message: "the admin cannot apply declarations now; the next registration tries again",
		})
	}
	d.applied.note(k, appliedBuild{now, notices})
	return notices
}

// Sweep lets the catalogues of builds that have left go out of force.
func (d *Declarer) Sweep(ctx context.Context) error {
	keys, err := d.opt.Store.ListUnsettled(ctx, reconcileBatch)
	if err != nil {
		return fmt.Errorf("list unsettled builds: %w", err)
	}
	var errs []error
	for _, k := range keys {
		_, err := d.reconcile(ctx, k.Tenant, k.Executor)
		if domain.Is(err, domain.CodeQuotaExceeded) { // a fault of the executor, not of the chore
			d.log.Warn("declarations were not applied", "tenant_id", k.Tenant, "executor_id", k.Executor, "err", err)
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("executor %s: %w", k.Executor, err))
		}
	}
	return errors.Join(errs...)
}

// reconcile puts the catalogues of the builds that are present into force. It
// writes nothing when they are, and may be called by many nodes at once.
func (d *Declarer) reconcile(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]refusal, error) {
	for again := false; ; again = true {
		builds, err := d.opt.Store.ListBuilds(ctx, tenant, executor)
		if err != nil {
			return nil, fmt.Errorf("list builds: %w", err)
		}
		contested := slices.ContainsFunc(builds, func(b domain.Build) bool { return b.Applied && b.Contested })
		if domain.SettledBuilds(builds) && !contested {
			return nil, nil
		}
		var known map[string]bool
		if !again { // what is unknown the second time is not new, but forgotten
			known = map[string]bool{}
			for _, b := range builds {
				known[b.Digest] = true
			}
		}
		refused, err := d.apply(ctx, store.ExecutorKey{Tenant: tenant, Executor: executor}, builds, known)
		if !errors.Is(err, errNewerBuild) {
			return refused, err
		}
	}
}

// apply makes what the present builds say together come true, and tells what of
// it could not be taken. A job that was declared by a build that is not
// known, unless known is nil, ends it with errNewerBuild.
func (d *Declarer) apply(ctx context.Context, k store.ExecutorKey, builds []domain.Build, known map[string]bool) ([]refusal, error) {
	present := domain.PresentBuilds(builds)
	if len(present) == 0 {
		return nil, nil
	}
	held := map[string]bool{}
	var refused []domain.RefusedDeclaration
	var refusals []refusal
	var m merged
	var plans []planned
	tell := func(r refusal, version string) {
		refused, refusals = noteRefused(refused, r.notice, version), append(refusals, r)
	}
	for tries := 0; ; {
		var err error
		if m, err = d.merge(ctx, k, present, held); err != nil {
			return nil, err
		}
		if err := d.opt.Store.DefineHandlers(ctx, k.Tenant, k.Executor, m.handlers); err != nil {
			return nil, fmt.Errorf("define handlers: %w", err)
		}
		if plans, err = d.planAll(ctx, k, m.jobs, known); err != nil {
			return nil, err
		}
		if holdBack(held, m, plans, tell) {
			continue
		}
		written, err := d.declareStrict(ctx, k, present, m, held, plans)
		if err == nil {
			plans = written
			break
		}
		if domain.Is(err, domain.CodeUnavailable) || domain.Is(err, domain.CodeInternal) {
			return nil, err
		}
		if tries++; tries < strictTries && !domain.Is(err, domain.CodeQuotaExceeded) {
			continue // somebody was quicker: what is to do is another thing now
		}
		tries = 0
		holdBackWhole(held, present, m, plans, err, tell)
	}
	refusals = append(refusals, m.refusals...)
	for _, p := range plans {
		if p.held {
			continue // its build is told why
		}
		err := p.err
		if !p.written {
			err = d.declare(ctx, k.Tenant, k.Executor, p)
		}
		switch {
		case errors.Is(err, errNewerBuild) || domain.Is(err, domain.CodeUnavailable):
			return nil, err
		case domain.Is(err, domain.CodeInternal): // no fault of the declaration
			d.log.Warn("a declaration was not applied; the next registration tries again", "tenant_id", k.Tenant, "job", p.declared.job.Name, "err", err)
			err = domain.Errorf(domain.CodeUnavailable, "the admin cannot apply the declaration now; the next registration tries again")
			fallthrough
		case err != nil:
			r := p.refusal(err)
			refused, refusals = noteRefused(refused, r.notice, p.terms.Version), append(refusals, r)
		case p.replaces():
			refusals = append(refusals, p.refusal(domain.Errorf(domain.CodeEdited, "the job %q was edited in the console by %s; this version owns it and has replaced the edit, which is its revision %d", p.job.Spec.Name, p.job.UpdatedBy, p.job.Revision)))
		}
	}
	if len(held) == 0 { // a build that is held back removes no jobs either
		if err := d.release(ctx, k, m.jobs, &present[len(present)-1]); err != nil {
			return nil, err
		}
	}
	var digests []string
	for _, b := range present {
		if !held[b.Digest] {
			digests = append(digests, b.Digest)
		}
	}
	err := d.opt.Store.SettleBuilds(ctx, store.SettleBuildsParams{ExecutorKey: k, Digests: digests, Refused: refused})
	return refusals, err
}

// planAll looks at all declarations, in the order of their names. It fails where they
// cannot be looked at now.
func (d *Declarer) planAll(ctx context.Context, k store.ExecutorKey, jobs map[string]*declared, known map[string]bool) ([]planned, error) {
	var plans []planned
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		p := planned{declared: jobs[name], err: errMayNotDeclare}
		if !p.silenced {
			p = d.look(ctx, k.Tenant, k.Executor, jobs[name], jobs, known)
		}
		if errors.Is(p.err, errNewerBuild) || domain.Is(p.err, domain.CodeUnavailable) {
			return nil, p.err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// replaces reports whether the declaration has replaced an edit of a person's. Its build is
// told once.
func (p *planned) replaces() bool {
	return p.step == domain.DeclareUpdate && p.job != nil && p.terms.Replaced == p.job.Revision && p.job.Source == domain.SourceConsole
}

func (p *planned) refusal(err error) refusal {
	return refusal{&proto.Notice{Code: string(domain.CodeOf(err)), Subject: p.declared.job.Name, Message: err.Error()}, p.builds}
}

// noteRefused adds what an operator sees, once per job: the newest build comes first.
func noteRefused(refused []domain.RefusedDeclaration, n *proto.Notice, version string) []domain.RefusedDeclaration {
	if slices.ContainsFunc(refused, func(r domain.RefusedDeclaration) bool { return r.Name == n.Subject }) {
		return refused
	}
	return append(refused, domain.RefusedDeclaration{Name: n.Subject, Code: domain.Code(n.Code), Message: n.Message, Version: version})
}

// holdBack adds those strict builds to held of whose declarations some are refused, and
// tells these. It reports whether there are any; what the other builds declare counts
// then, and has to be looked at anew.
func holdBack(held map[string]bool, m merged, plans []planned, tell func(r refusal, version string)) (more bool) {
	fresh := map[string]bool{}
	each := func(use func(r refusal, version string, ofJob bool)) {
		for _, r := range m.refusals {
			use(r, "", false)
		}
		for _, p := range plans {
			if p.err != nil && !p.held && !domain.Is(p.err, domain.CodeEdited) && !domain.Is(p.err, domain.CodeInternal) {
				use(p.refusal(p.err), p.terms.Version, true)
			}
		}
	}
	each(func(r refusal, _ string, _ bool) {
		for _, b := range r.builds {
			if m.strict[b] && !held[b] {
				fresh[b] = true
			}
		}
	})
	each(func(r refusal, version string, ofJob bool) {
		r.builds = slices.DeleteFunc(slices.Clone(r.builds), func(b string) bool { return !fresh[b] })
		if ofJob && len(r.builds) > 0 { // what is declared beside handlers is told in any case
			tell(r, version)
		}
	})
	maps.Copy(held, fresh)
	return len(fresh) > 0
}

// strictTries is how often a strict build is looked at while others change its jobs.
const strictTries = 5

// declareStrict writes what strict builds declare, all of it in one transaction. It
// returns the plans with those marked that are written.
func (d *Declarer) declareStrict(ctx context.Context, k store.ExecutorKey, present []domain.Build, m merged, held map[string]bool, plans []planned) ([]planned, error) {
	var all []store.DeclaredWrite
	var logs []func()
	out := slices.Clone(plans)
	for i := range out {
		p := &out[i]
		if p.held || p.silenced || newestStrict(present, m, held, p.builds) == "" {
			continue
		}
		if domain.Is(p.err, domain.CodeInternal) { // no fault of the declaration, and the others wait for it
			return nil, p.err
		}
		writes, log, err := d.writesOf(k.Tenant, k.Executor, *p)
		all, p.err, p.written = append(all, writes...), err, true
		if len(writes) > 0 {
			logs = append(logs, log)
		}
	}
	if err := d.write(ctx, k, all); err != nil {
		return nil, err
	}
	for _, log := range logs {
		log()
	}
	if len(logs) > 0 {
		d.opt.Changed()
	}
	return out, nil
}

// newestStrict returns the newest of the builds that are to be in force as a whole and are
// not held back; empty: none.
func newestStrict(present []domain.Build, m merged, held map[string]bool, builds []string) string {
	for _, b := range slices.Backward(present) {
		if m.strict[b.Digest] && !held[b.Digest] && slices.Contains(builds, b.Digest) {
			return b.Digest
		}
	}
	return ""
}

// holdBackWhole adds the newest strict build to held, and tells it once why: its jobs do
// not fit together.
func holdBackWhole(held map[string]bool, present []domain.Build, m merged, plans []planned, err error, tell func(r refusal, version string)) {
	var newest string
	for _, b := range slices.Backward(present) {
		if newest == "" && slices.ContainsFunc(plans, func(p planned) bool { return newestStrict([]domain.Build{b}, m, held, p.builds) != "" }) {
			newest = b.Digest
		}
	}
	held[newest] = true
	var first *planned
	jobs := 0
	for i := range plans {
		if p := &plans[i]; slices.Contains(p.builds, newest) {
			if jobs++; first == nil || first.step == domain.DeclareNothing {
				first = p // the subject: one that is to be written
			}
		}
	}
	whole := domain.Errorf(domain.CodeOf(err), "none of the %d jobs of this strict version is taken: %w", jobs, err)
	tell(refusal{first.refusal(whole).notice, []string{newest}}, first.terms.Version)
}

// Weights reads how many slots a run of each handler takes from a build's
// catalogue; a handler that does not say it takes 1 and is left out.
func Weights(catalogue []byte) (map[string]int, error) {
	var frame proto.Register
	if err := gproto.Unmarshal(catalogue, &frame); err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, h := range frame.Handlers {
		if h.Weight > 1 {
			out[h.Name] = int(h.Weight)
		}
	}
	return out, nil
}

// errMayNotDeclare is why a job of an application is not taken whose join token
// allows none. What is there of it stays as it is.
var errMayNotDeclare = domain.Errorf(domain.CodeDenied, "the join token of this application may not declare jobs; its handlers are registered. Create the job here, or give the application a token that may")

// merged is what the present builds declare together.
type merged struct {
	handlers []domain.Handler
	jobs     map[string]*declared
	refusals []refusal
	strict   map[string]bool // digests of those that are to be in force as a whole or not at all, and are not yet
}

// merge takes each handler and each job from the newest build that has it;
// present has the newest last. Refusals tell which handlers' settings for calls
// could not be taken. One catalogue at a time is in memory: each may have 1 MiB,
// and there may be store.MaxBuilds. A job of a build that is held back is that of an
// older build.
func (d *Declarer) merge(ctx context.Context, k store.ExecutorKey, present []domain.Build, held map[string]bool) (m merged, err error) {
	handlers, jobs := map[string]*proto.Handler{}, map[string]*declared{}
	m.jobs, m.strict = jobs, map[string]bool{}
	from := map[string]string{} // handler → digest of the build
	for i := range present {
		b := &present[i]
		catalogues, err := d.opt.Store.ReadCatalogues(ctx, k.Tenant, k.Executor, []string{b.Digest})
		if err != nil {
			return m, fmt.Errorf("read catalogue: %w", err)
		}
		var frame proto.Register
		if err := gproto.Unmarshal(catalogues[b.Digest], &frame); err != nil {
			return m, fmt.Errorf("read catalogue of build %s: %w", b.Digest, err)
		}
		m.strict[b.Digest] = frame.Strict && !b.Applied && !b.NoJobs
		blocked := b.NoJobs || held[b.Digest]
		for _, h := range frame.Handlers {
			handlers[h.Name], from[h.Name] = h, b.Digest
			for _, j := range h.Jobs {
				hash, err := declarationHash(h.Name, j)
				if err != nil {
					return m, err
				}
				older := jobs[j.Name]
				if blocked && older != nil && !older.silenced {
					continue // a build that may declare it has it too
				}
				w := &declared{handler: h, job: j, hash: hash, silenced: blocked, held: held[b.Digest], builds: []string{b.Digest}, terms: domain.Declared{
					By: k.Executor, Name: j.Name, Ownership: domain.Ownership(j.Ownership), Removal: domain.Removal(j.Removal),
					Build: b.Digest, Version: b.Version,
				}}
				if older != nil && older.hash == hash {
					w.builds = append(w.builds, older.builds...)
				}
				jobs[j.Name] = w
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		h := handlers[name]
		calls, err := d.callsOf(ctx, k, h)
		if domain.Is(err, domain.CodeUnavailable) {
			return m, err
		} else if err != nil {
			notice := &proto.Notice{Code: string(domain.CodeOf(err)), Subject: name, Message: "calls of the handler: " + err.Error()}
			m.refusals = append(m.refusals, refusal{notice, []string{from[name]}})
		}
		m.handlers = append(m.handlers, domain.Handler{
			TenantID: k.Tenant, Executor: k.Executor, Name: h.Name, Description: h.Description,
			InputSchema: h.InputSchema, OutputSchema: h.OutputSchema, Idempotent: h.Idempotent, Calls: calls,
		})
	}
	return m, nil
}
