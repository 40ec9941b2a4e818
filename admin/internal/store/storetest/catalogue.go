package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// joins registers an instance of a build.
func (f *fixture) joins(boot, digest, version string, handlers ...string) domain.Instance {
	f.t.Helper()
	p := store.RegisterInstanceParams{
		Instance: domain.Instance{
			ID: domain.InstanceID(ids.Next()), TenantID: f.tenant, Executor: f.executor, BootID: boot, Name: boot, Handlers: handlers, Build: digest,
		},
		Build: domain.Build{Digest: digest, Version: version, Generation: 7, Handlers: handlers, Catalogue: []byte("as " + version)},
		TTL:   time.Minute,
	}
	for _, h := range handlers {
		p.Handlers = append(p.Handlers, domain.Handler{Name: h, Description: "of " + version, InputSchema: []byte(`{}`)})
	}
	i, err := RegisterInstance(f.ctx, f.s, p)
	f.ok(err)
	return i
}

func (f *fixture) builds() map[string]domain.Build {
	f.t.Helper()
	list, err := f.s.ListBuilds(f.ctx, f.tenant, f.executor)
	f.ok(err)
	out := map[string]domain.Build{}
	for _, b := range list {
		out[b.Digest] = b
	}
	return out
}

// unsettled reports whether this fixture's executor is among the unsettled.
func (f *fixture) unsettled() bool {
	f.t.Helper()
	keys, err := f.s.ListUnsettled(f.ctx, 1000)
	f.ok(err)
	for _, k := range keys {
		if k == (store.ExecutorKey{Tenant: f.tenant, Executor: f.executor}) {
			return true
		}
	}
	return false
}

func (f *fixture) settle(refused []domain.RefusedDeclaration, digests ...string) {
	f.t.Helper()
	f.ok(f.s.SettleBuilds(f.ctx, store.SettleBuildsParams{
		ExecutorKey: store.ExecutorKey{Tenant: f.tenant, Executor: f.executor}, Digests: digests, Refused: refused,
	}))
}

// refused is what is known to have been refused, without when.
func (f *fixture) refused() []domain.RefusedDeclaration {
	f.t.Helper()
	list, err := f.s.ListRefusedDeclarations(f.ctx, f.tenant, f.executor)
	f.ok(err)
	for i := range list {
		require.WithinDuration(f.t, time.Now(), list[i].At, time.Minute)
		list[i].At = time.Time{}
	}
	return list
}

func testBuilds(t *testing.T, f *fixture) {
	require.Empty(t, f.builds())
	require.False(t, f.unsettled())
	old := f.joins("b1", "d1", "1.2", "a", "b")
	first := f.builds()["d1"]
	require.Equal(t, domain.Build{
		TenantID: f.tenant, Executor: f.executor, Digest: "d1", Version: "1.2", Generation: 7, Handlers: []string{"a", "b"},
		Instances: 1, Present: true, FirstSeenAt: first.FirstSeenAt, LastSeenAt: first.FirstSeenAt,
	}, first)
	catalogues, err := f.s.ReadCatalogues(f.ctx, f.tenant, f.executor, []string{"d1", "no such"})
	f.ok(err)
	require.Equal(t, map[string][]byte{"d1": []byte("as 1.2")}, catalogues)
	require.True(t, f.unsettled(), "it is not in force yet")
	refused := []domain.RefusedDeclaration{
		{Name: "a", Code: domain.CodeConflict, Message: "it is another executor's", Version: "1.2"},
		{Name: "b", Code: domain.CodeInvalid, Message: strings.Repeat("long ", 1000)},
	}
	taken := f.job(func(s *domain.JobSpec) { s.Name = "a" })
	f.settle(refused, "d1")
	refused[1].Message = refused[1].Message[:1023] + "…"
	require.Equal(t, refused, f.refused())
	require.True(t, f.builds()["d1"].Applied)
	require.True(t, f.builds()["d1"].Contested)
	require.False(t, f.unsettled())
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: taken.ID, State: domain.JobDeleted})
	f.ok(err)
	require.True(t, f.unsettled(), "the name is free")

	calls := &domain.JobSpec{
		Handler: "c", Timeout: time.Second, Retry: domain.Retry{MaxAttempts: 2}, OnFailure: domain.FollowUp{Handler: "d"}, Blocking: domain.BlockSerial, Priority: 3,
		Require: domain.Selector{Text: ""}, SendRetry: domain.SendRetry{MaxSends: 1},
	}
	// A second version: it adds what is new, and defines nothing by itself.
	f.joins("b2", "d2", "1.3", "b", "c")
	handlers, err := listHandlers(f, f.executor)
	f.ok(err)
	require.Len(t, handlers, 3)
	require.Equal(t, "of 1.2", handlers[1].Description)
	require.Equal(t, "of 1.3", handlers[2].Description)
	f.ok(f.s.DefineHandlers(f.ctx, f.tenant, f.executor, []domain.Handler{{Name: "b", Description: "defined"}, {Name: "c", Calls: calls}}))
	b, err := f.s.FindHandler(f.ctx, f.tenant, f.executor, "b")
	f.ok(err)
	require.Equal(t, "defined", b.Description)
	require.Nil(t, b.Calls)
	c, err := f.s.FindHandler(f.ctx, f.tenant, f.executor, "c")
	f.ok(err)
	require.Equal(t, calls, c.Calls)
	f.ok(f.s.DefineHandlers(f.ctx, f.tenant, f.executor, []domain.Handler{{Name: "c"}}))
	c, err = f.s.FindHandler(f.ctx, f.tenant, f.executor, "c")
	f.ok(err)
	require.Nil(t, c.Calls)
	require.Nil(t, b.InputSchema)
	require.Equal(t, handlers[1].FirstSeenAt, b.FirstSeenAt)
	require.True(t, f.unsettled())
	f.settle(refused[1:], "d1", "d2")
	require.Equal(t, refused[1:], f.refused(), "all others are gone")
	f.settle(nil, "d1", "d2")
	require.Empty(t, f.refused())
	require.False(t, f.unsettled())
	require.False(t, f.builds()["d1"].Contested)

	// One leaves: it counts for a while, then it is out of force.
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, old.ID, "stopped"))
	require.Zero(t, f.builds()["d1"].Instances)
	require.True(t, f.builds()["d1"].Present)
	require.False(t, f.unsettled())
	f.ok(f.s.AgeInstance(f.ctx, old.ID, domain.BuildGrace+time.Second))
	require.False(t, f.builds()["d1"].Present)
	require.True(t, f.unsettled())
	many := make([]domain.RefusedDeclaration, store.MaxRefusedDeclarations+1)
	for i := range many {
		many[i].Name = fmt.Sprintf("job-%03d", i)
	}
	f.settle(many, "d2")
	require.Equal(t, many[:store.MaxRefusedDeclarations], f.refused())
	f.settle(nil, "d2")
	require.False(t, f.unsettled())
	require.False(t, f.builds()["d1"].Applied)
	require.True(t, f.builds()["d2"].Applied)
}

// What flaps writes its instances and nothing else.
func testBuildsFlap(t *testing.T, f *fixture) {
	f.joins("flap", "d1", "1.2", "a")
	f.ok(f.s.DefineHandlers(f.ctx, f.tenant, f.executor, []domain.Handler{{Name: "a", Description: "defined"}}))
	before := f.builds()["d1"]
	a, err := f.s.FindHandler(f.ctx, f.tenant, f.executor, "a")
	f.ok(err)
	f.tick()
	for range 3 {
		i := f.joins("flap", "d1", "1.2", "a")
		f.ok(LeaveInstance(f.ctx, f.s, f.tenant, i.ID, "stopped"))
	}
	after := f.builds()["d1"]
	after.Instances = before.Instances
	require.Equal(t, before, after, "the build was not written again")
	again, err := f.s.FindHandler(f.ctx, f.tenant, f.executor, "a")
	f.ok(err)
	require.Equal(t, a, again, "nor the handler")
}

// An executor that registers another build each time keeps a bounded number of
// them: those that nobody uses make room, the oldest first.
func testBuildsAreBounded(t *testing.T, f *fixture) {
	register := func(boot, digest string) error {
		list, err := f.s.RegisterInstances(f.ctx, []store.RegisterInstanceParams{{
			Instance: domain.Instance{ID: domain.InstanceID(ids.Next()), TenantID: f.tenant, Executor: f.executor, BootID: boot, Name: boot, Build: digest},
			Build:    domain.Build{Digest: digest, Catalogue: []byte(digest)}, TTL: time.Minute,
		}})
		f.ok(err)
		return list[0].Err
	}
	f.ok(register("in force", "in force"))
	f.settle(nil, "in force")
	f.ok(register("lives", "in use"))
	for i := range store.MaxBuilds + 5 { // one process, another catalogue each time
		f.ok(register("changes", fmt.Sprintf("d%03d", i)))
		f.tick()
	}
	builds := f.builds()
	require.Len(t, builds, store.MaxBuilds)
	require.Contains(t, builds, "in force")
	require.Contains(t, builds, "in use")
	require.NotContains(t, builds, "d006", "the oldest that is not used")
	require.Contains(t, builds, "d007")

	// Everything is used: another one finds no room, a known one does.
	for i := range store.MaxBuilds - 2 {
		f.ok(register(fmt.Sprintf("p%03d", i), fmt.Sprintf("d%03d", i+7)))
	}
	f.code(domain.CodeQuotaExceeded, register("one too many", "another"))
	f.ok(register("one more of a kind", "d100"))
	require.Len(t, f.builds(), store.MaxBuilds)
	instances, err := f.s.ListInstances(f.ctx, store.ListInstancesParams{Tenant: f.tenant, Executor: f.executor, Limit: 1000})
	f.ok(err)
	for _, i := range instances {
		require.NotEqual(t, "one too many", i.BootID, "what was refused is no instance")
	}
}

// The names of the handlers of all builds have a bound, too.
func testBuildNamesAreBounded(t *testing.T, f *fixture) {
	names := make([]string, store.MaxHandlers/2)
	for i := range names {
		names[i] = fmt.Sprintf("%04d-%s", i, strings.Repeat("h", 180))
	}
	boot := func(i int) string { return fmt.Sprintf("p%03d", i) }
	register := func(boot, digest string) error {
		list, err := f.s.RegisterInstances(f.ctx, []store.RegisterInstanceParams{{
			Instance: domain.Instance{ID: domain.InstanceID(ids.Next()), TenantID: f.tenant, Executor: f.executor, BootID: boot, Name: boot, Build: digest},
			Build:    domain.Build{Digest: digest, Handlers: names}, TTL: time.Minute,
		}})
		f.ok(err)
		return list[0].Err
	}
	const most = store.MaxBuildNames / (188 * store.MaxHandlers / 2) // of them have room, 187 bytes a name at least
	for i := range most + 5 {
		f.ok(register("changes", boot(i)))
		f.tick()
	}
	builds := f.builds()
	require.Less(t, len(builds), most+1)
	require.Greater(t, len(builds), most-3)
	require.Contains(t, builds, boot(most+4), "the newest")
	require.NotContains(t, builds, boot(0), "the oldest")
	refused := 0
	for i := range most + 5 {
		if err := register(boot(i), boot(i)); err != nil {
			f.code(domain.CodeQuotaExceeded, err)
			refused++
		}
	}
	require.Greater(t, refused, 3, "everything is used")
	require.Less(t, refused, 10)
}

func testDeclared(t *testing.T, f *fixture) {
	declared := domain.Declared{By: f.executor, Name: "as declared", Ownership: domain.OwnedByCode, Removal: domain.RemovalDelete, Build: "d1", Version: "1.2"}
	j := f.job(nil)
	require.Zero(t, j.Declared)
	list, err := f.s.ListDeclaredJobs(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Empty(t, list)
	f.ok(f.s.WriteDeclared(f.ctx, f.tenant, []store.DeclaredWrite{{Mark: &store.DeclaredMark{Job: j.ID, Declared: declared, Hash: "h1"}}}))
	found, err := f.s.FindJob(f.ctx, f.tenant, j.ID)
	f.ok(err)
	want := j
	want.Declared, want.DeclarationHash = declared, "h1"
	require.Equal(t, want.Job, found.Job, "nothing else has changed")

	next := func(time.Time, *domain.JobSpec) time.Time { return domain.Never }
	found, err = f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: j.Spec, Source: domain.SourceConsole, DeclarationHash: "h1", Next: next})
	f.ok(err)
	require.Equal(t, declared, found.Declared, "an edit keeps it")
	declared.Gone, declared.PausedGone = true, true
	found, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobPaused, Declared: &declared, By: "application", Note: "not declared"})
	f.ok(err)
	require.Equal(t, declared, found.Declared)
	found, err = f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: j.Spec, Source: domain.SourceConsole, DeclarationHash: "h1", By: "anna", Next: next})
	f.ok(err)
	require.Equal(t, declared, found.Declared, "an edit does not say who paused it")
	found, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobPaused, By: "anna"})
	f.ok(err)
	declared.PausedGone = false
	require.Equal(t, []any{declared, "anna", ""}, []any{found.Declared, found.UpdatedBy, found.Pause.Note}, "who pauses it too is not overruled by the application")
	found, err = f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: j.Spec, Source: domain.SourceCode, Declared: &declared, Next: next})
	f.ok(err)
	require.Equal(t, declared, found.Declared)
	list, err = f.s.ListDeclaredJobs(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Len(t, list, 1)
	require.Equal(t, found, list[0])

	byName := func(name string) (store.JobView, error) {
		return f.s.FindDeclaredJob(f.ctx, f.tenant, f.executor, name)
	}
	view, err := byName("as declared")
	f.ok(err)
	require.Equal(t, found, view)
	_, err = byName(j.Spec.Name)
	f.code(domain.CodeNotFound, err)

	was, err := f.s.WasDeclared(f.ctx, f.tenant, f.executor, "as declared")
	f.ok(err)
	require.False(t, was, "it lives")
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted})
	f.ok(err)
	_, err = byName("as declared")
	f.code(domain.CodeNotFound, err)
	was, err = f.s.WasDeclared(f.ctx, f.tenant, f.executor, "as declared")
	f.ok(err)
	require.True(t, was)
	list, err = f.s.ListDeclaredJobs(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Empty(t, list)
	f.code(domain.CodeNotFound, f.s.WriteDeclared(f.ctx, f.tenant, []store.DeclaredWrite{{Mark: &store.DeclaredMark{Job: j.ID}}}))

	made, err := f.s.CreateJob(f.ctx, domain.Job{
		ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: f.executor, Source: domain.SourceCode, Declared: declared, Spec: j.Spec,
	}, next)
	f.ok(err)
	require.Equal(t, declared, made.Declared)

	// Its code removes it: that somebody had deleted the one before is settled.
	removed := declared
	removed.Name = ""
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: made.ID, State: domain.JobDeleted, Declared: &removed})
	f.ok(err)
	was, err = f.s.WasDeclared(f.ctx, f.tenant, f.executor, "as declared")
	f.ok(err)
	require.False(t, was)
}

func testProposals(t *testing.T, f *fixture) {
	j := f.job(nil)
	propose := func(name, hash, description string) {
		t.Helper()
		spec := j.Spec
		spec.Name, spec.Description = name, description
		f.ok(f.s.Propose(f.ctx, domain.Proposal{
			ID: ids.Next(), TenantID: f.tenant, Executor: f.executor, Name: name, Hash: hash, Build: "d1", Version: "1.2", Removal: domain.RemovalKeep, Spec: spec,
		}))
	}
	pending := func() []store.ProposalView {
		t.Helper()
		list, err := f.s.ListProposals(f.ctx, store.ListProposalsParams{Tenant: f.tenant, Executor: f.executor})
		f.ok(err)
		return list.Items
	}
	require.Empty(t, pending())
	propose(j.Spec.Name, "h1", "one")
	propose("not there yet", "n1", "new")
	propose(j.Spec.Name, "h1", "the same again")
	list := pending()
	require.Len(t, list, 2)
	require.Equal(t, j.ID, list[0].Job.ID)
	require.Nil(t, list[1].Job)
	require.Equal(t, "shop", list[0].ExecutorName)
	first := list[0].Proposal
	spec := j.Spec
	spec.Description = "one"
	require.Equal(t, domain.Proposal{
		ID: first.ID, TenantID: f.tenant, Executor: f.executor, Name: j.Spec.Name, State: domain.ProposalPending, Hash: "h1", Build: "d1",
		Version: "1.2", Removal: domain.RemovalKeep, Spec: spec, ProposedAt: first.ProposedAt,
	}, first)
	page, err := f.s.ListProposals(f.ctx, store.ListProposalsParams{Tenant: f.tenant, After: first.ID, Limit: 1})
	f.ok(err)
	require.Equal(t, list[1:], page.Items)

	f.code(domain.CodeConflict, f.s.DeclineProposal(f.ctx, f.tenant, first.ID, "h0", "anna"))
	f.ok(f.s.DeclineProposal(f.ctx, f.tenant, first.ID, "h1", "anna"))
	f.code(domain.CodeConflict, f.s.DeclineProposal(f.ctx, f.tenant, first.ID, "h1", "bob"))
	require.Len(t, pending(), 1)
	propose(j.Spec.Name, "h1", "declined before")
	require.Len(t, pending(), 1, "it stays declined")
	declined, err := f.s.FindProposal(f.ctx, f.tenant, first.ID)
	f.ok(err)
	require.Equal(t, []any{domain.ProposalDeclined, "anna"}, []any{declined.State, declined.DecidedBy})
	require.False(t, declined.DecidedAt.IsZero())
	propose(j.Spec.Name, "h2", "something else")
	require.Len(t, pending(), 2)
	again, err := f.s.FindProposal(f.ctx, f.tenant, first.ID)
	f.ok(err)
	require.Equal(t, []any{domain.ProposalPending, "h2", "", "something else"}, []any{again.State, again.Hash, again.DecidedBy, again.Spec.Description})

	f.ok(f.s.DropProposals(f.ctx, f.tenant, f.executor, []string{j.Spec.Name, "no such"}))
	require.Len(t, pending(), 1)
	_, err = f.s.FindProposal(f.ctx, f.tenant, first.ID)
	f.code(domain.CodeNotFound, err)
}

func testCatalogueWall(t *testing.T, f *fixture) {
	b := newFixture(t, f.s)
	f.joins("b1", "d1", "1.2", "a")
	j := f.job(nil)
	f.ok(f.s.WriteDeclared(f.ctx, f.tenant, []store.DeclaredWrite{{Mark: &store.DeclaredMark{Job: j.ID, Declared: domain.Declared{By: f.executor, Name: "as declared"}}}}))
	f.ok(f.s.Propose(f.ctx, domain.Proposal{ID: ids.Next(), TenantID: f.tenant, Executor: f.executor, Name: j.Spec.Name, Hash: "h", Spec: j.Spec}))
	mine, err := f.s.ListProposals(f.ctx, store.ListProposalsParams{Tenant: f.tenant})
	f.ok(err)
	require.Len(t, mine.Items, 1)

	refused := []domain.RefusedDeclaration{{Name: "a", Code: domain.CodeConflict, Message: "no"}}
	f.settle(refused, "d2") // of no build: what is in force stays as it is

	builds, err := b.s.ListBuilds(b.ctx, b.tenant, f.executor)
	f.ok(err)
	require.Empty(t, builds)
	none, err := b.s.ListRefusedDeclarations(b.ctx, b.tenant, f.executor)
	f.ok(err)
	require.Empty(t, none)
	catalogues, err := b.s.ReadCatalogues(b.ctx, b.tenant, f.executor, []string{"d1"})
	f.ok(err)
	require.Empty(t, catalogues)
	jobs, err := b.s.ListDeclaredJobs(b.ctx, b.tenant, f.executor)
	f.ok(err)
	require.Empty(t, jobs)
	f.code(domain.CodeNotFound, b.s.WriteDeclared(b.ctx, b.tenant, []store.DeclaredWrite{{Mark: &store.DeclaredMark{Job: j.ID, Hash: "x"}}}))
	_, err = b.s.FindDeclaredJob(b.ctx, b.tenant, f.executor, "as declared")
	f.code(domain.CodeNotFound, err)
	was, err := b.s.WasDeclared(b.ctx, b.tenant, f.executor, "as declared")
	f.ok(err)
	require.False(t, was)
	theirs, err := b.s.ListProposals(b.ctx, store.ListProposalsParams{Tenant: b.tenant, Executor: f.executor})
	f.ok(err)
	require.Empty(t, theirs.Items)
	_, err = b.s.FindProposal(b.ctx, b.tenant, mine.Items[0].ID)
	f.code(domain.CodeNotFound, err)
	f.code(domain.CodeConflict, b.s.DeclineProposal(b.ctx, b.tenant, mine.Items[0].ID, "h", "eve"))
	f.ok(b.s.DropProposals(b.ctx, b.tenant, f.executor, []string{j.Spec.Name}))
	f.ok(b.s.SettleBuilds(b.ctx, store.SettleBuildsParams{ExecutorKey: store.ExecutorKey{Tenant: b.tenant, Executor: f.executor}, Digests: []string{"d1"}}))
	f.ok(b.s.DefineHandlers(b.ctx, b.tenant, f.executor, []domain.Handler{{Name: "a", Description: "eve"}}))
	require.False(t, f.builds()["d1"].Applied)
	require.Equal(t, refused, f.refused())
	a, err := f.s.FindHandler(f.ctx, f.tenant, f.executor, "a")
	f.ok(err)
	require.Equal(t, "of 1.2", a.Description)
	still, err := f.s.ListProposals(f.ctx, store.ListProposalsParams{Tenant: f.tenant})
	f.ok(err)
	require.Equal(t, mine, still)
}

// listHandlers lists all handlers of an executor that f's tenant may see.
func listHandlers(f *fixture, executor domain.ExecutorID) ([]domain.Handler, error) {
	page, err := f.s.ListHandlers(f.ctx, store.ListHandlersParams{Tenant: f.tenant, Executor: executor, Limit: 10_000})
	return page.Items, err
}
