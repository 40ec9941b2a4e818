package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func (f *fixture) rename(id domain.ExecutorID, name string) error {
	_, err := f.s.UpdateExecutor(f.ctx, store.UpdateExecutorParams{Tenant: f.tenant, ID: id, Name: &name})
	return err
}

// newExecutor makes an executor with an id of its own.
func (f *fixture) newExecutor(name string) (domain.ExecutorID, error) {
	id := domain.ExecutorID(ids.Next())
	return id, f.s.CreateExecutor(f.ctx, domain.Executor{ID: id, TenantID: f.tenant, Name: name})
}

// testExecutorRename: whatever uses a former name goes on working.
func testExecutorRename(t *testing.T, f *fixture) {
	b := newFixture(t, f.s)
	token := domain.JoinToken{ID: ids.Next(), TenantID: f.tenant, Executor: f.executor, Hash: hash(f, "j")}
	f.ok(f.s.CreateJoinToken(f.ctx, token))
	key := domain.APIKey{ID: ids.Next(), TenantID: f.tenant, Hash: hash(f, "k"), Scope: domain.Scope{Executors: []string{"shop", "other"}, Handlers: []string{"shop/close-day", "shopping/x"}}}
	f.ok(f.s.CreateAPIKey(f.ctx, key))
	member := domain.User{ID: domain.UserID(ids.Next()), Username: "mei " + f.tenant.String(), PasswordHash: "h", CreatedAt: time.UnixMilli(1800000000001).UTC()}
	f.ok(f.s.CreateUser(f.ctx, member, domain.Membership{TenantID: f.tenant, UserID: member.ID, Role: domain.RoleViewer, Scope: domain.Scope{Executors: []string{"shop"}}}))
	comesBy := func(name string) string {
		used := useTokens(f, store.JoinTokenUse{Hash: token.Hash, BootID: "boot " + name, Executor: name})[0]
		f.ok(used.Err)
		return used.Executor
	}
	scope := func() domain.Scope {
		k, err := f.s.FindAPIKeyByHash(f.ctx, key.Hash)
		f.ok(err)
		return k.Scope
	}
	require.Equal(t, "shop", comesBy("warehouse"), "which is refused")

	before, err := f.s.FindExecutor(f.ctx, f.tenant, f.executor)
	f.ok(err)
	name, description := "store", "orders"
	e, err := f.s.UpdateExecutor(f.ctx, store.UpdateExecutorParams{Tenant: f.tenant, ID: f.executor, IfVersion: before.Version, Name: &name, Description: &description, CallbacksTo: &[]string{"bank", "carillon"}})
	f.ok(err)
	require.Equal(t, []any{"store", "orders", before.Version + 1, []string{"bank", "carillon"}}, []any{e.Name, e.Description, e.Version, e.CallbacksTo})
	_, err = f.s.UpdateExecutor(f.ctx, store.UpdateExecutorParams{Tenant: f.tenant, ID: f.executor, IfVersion: before.Version, Name: &name})
	f.code(domain.CodeRevisionMismatch, err)
	_, err = f.s.UpdateExecutor(f.ctx, store.UpdateExecutorParams{Tenant: b.tenant, ID: f.executor, Name: &name})
	f.code(domain.CodeNotFound, err)
	for _, n := range []string{"shop", "store"} {
		found, err := f.s.FindExecutorByName(f.ctx, f.tenant, n)
		f.ok(err)
		require.Equal(t, e, found)
		require.Equal(t, n, comesBy(n))
	}
	require.Equal(t, "store", comesBy("warehouse"))
	for _, n := range []string{"shop ", "store "} {
		_, err = f.s.FindExecutorByName(f.ctx, f.tenant, n)
		f.code(domain.CodeNotFound, err)
	}
	found, err := b.s.FindExecutorByName(b.ctx, b.tenant, "shop")
	f.ok(err)
	require.Equal(t, b.executor, found.ID, "each tenant has its own")
	require.Equal(t, domain.Scope{Executors: []string{"shop", "other", "store"}, Handlers: []string{"shop/close-day", "shopping/x", "store/close-day"}}, scope())
	memberships, err := f.s.ListMemberships(f.ctx, member.ID)
	f.ok(err)
	require.Equal(t, domain.Scope{Executors: []string{"shop", "store"}}, memberships[0].Scope)
	members, err := f.s.ListMembers(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, memberships[0].Scope, members[0].Scope)
	reach, err := f.s.FindExecutorIDs(f.ctx, f.tenant, memberships[0].Scope.Executors)
	f.ok(err)
	require.Equal(t, []domain.ExecutorID{f.executor}, reach)

	// A former name is nobody else's until it is removed.
	_, err = f.newExecutor("shop")
	f.code(domain.CodeConflict, err)
	other, err := f.newExecutor("other")
	f.ok(err)
	f.code(domain.CodeConflict, f.rename(other, "shop"))
	f.code(domain.CodeConflict, f.rename(other, "store"))
	f.code(domain.CodeInvalid, f.rename(other, domain.BuiltInExecutor))
	aliases := func() []string {
		list, err := f.s.ListExecutorAliases(f.ctx, f.tenant, f.executor)
		f.ok(err)
		return list
	}
	f.ok(f.rename(f.executor, "shop"))
	require.Equal(t, []string{"store"}, aliases(), "its own former name is its name again")
	f.code(domain.CodeNotFound, f.s.DeleteExecutorAlias(f.ctx, f.tenant, f.executor, "shop"))
	f.code(domain.CodeNotFound, f.s.DeleteExecutorAlias(f.ctx, f.tenant, other, "store"))
	f.code(domain.CodeNotFound, b.s.DeleteExecutorAlias(b.ctx, b.tenant, f.executor, "store"))
	f.ok(f.s.DeleteExecutorAlias(f.ctx, f.tenant, f.executor, "store"))
	require.Empty(t, aliases())
	require.Equal(t, key.Scope, scope())
	require.Equal(t, "shop", comesBy("store"))
	f.ok(f.rename(other, "store"))

	for i := range domain.MaxExecutorAliases {
		f.ok(f.rename(f.executor, fmt.Sprintf("shop-%d", i)))
	}
	f.code(domain.CodeConflict, f.rename(f.executor, "shop-last"))
}

func testExecutorDelete(t *testing.T, f *fixture) {
	const year = 365 * 24 * time.Hour
	b := newFixture(t, f.s)
	id, err := f.newExecutor("doomed")
	f.ok(err)
	of := *f
	of.executor = id
	of.instance = of.register("doomed boot", time.Minute, domain.Handler{Name: "close-day"}).ID
	job := of.job(nil)
	run := of.start(of.run(job))
	token := domain.JoinToken{ID: ids.Next(), TenantID: f.tenant, Executor: id, Hash: hash(f, "j")}
	f.ok(f.s.CreateJoinToken(f.ctx, token))
	f.ok(useTokens(f, store.JoinTokenUse{Hash: token.Hash, BootID: "a"})[0].Err)
	f.ok(f.rename(id, "condemned"))
	bystanders := func() []int {
		var out []int
		for _, e := range []domain.ExecutorID{f.executor, b.executor} {
			n, err := f.s.RowsOf(f.ctx, int64(e))
			f.ok(err)
			out = append(out, n)
		}
		return out
	}
	kept := bystanders()

	p := store.DeleteExecutorParams{Tenant: f.tenant, ID: id, EndInstances: true}
	f.code(domain.CodeInUse, f.s.DeleteExecutor(f.ctx, p))
	use, err := f.s.ExecutorUse(f.ctx, f.tenant, id)
	f.ok(err)
	require.Equal(t, store.ExecutorUse{Jobs: 1, Instances: 1}, use)
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: job.ID, State: domain.JobDeleted})
	f.ok(err)
	p.EndInstances = false
	f.code(domain.CodeInUse, f.s.DeleteExecutor(f.ctx, p))
	p.EndInstances = true
	f.code(domain.CodeRevisionMismatch, f.s.DeleteExecutor(f.ctx, store.DeleteExecutorParams{Tenant: f.tenant, ID: id, IfVersion: 99, EndInstances: true}))
	f.code(domain.CodeNotFound, f.s.DeleteExecutor(f.ctx, store.DeleteExecutorParams{Tenant: b.tenant, ID: id, EndInstances: true}))
	f.ok(f.s.DeleteExecutor(f.ctx, p))
	f.code(domain.CodeNotFound, f.s.DeleteExecutor(f.ctx, p))

	for _, name := range []string{"doomed", "condemned"} {
		_, err = f.s.FindExecutorByName(f.ctx, f.tenant, name)
		f.code(domain.CodeNotFound, err)
	}
	_, err = f.s.FindExecutor(f.ctx, f.tenant, id)
	f.code(domain.CodeNotFound, err)
	f.code(domain.CodeUnauthenticated, useTokens(f, store.JoinTokenUse{Hash: token.Hash, BootID: "a"})[0].Err)
	_, err = RegisterInstance(f.ctx, f.s, store.RegisterInstanceParams{Instance: domain.Instance{ID: 1, TenantID: f.tenant, Executor: id, BootID: "x"}})
	f.code(domain.CodeNotFound, err)
	_, err = f.s.CreateJob(f.ctx, domain.Job{ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: id, Spec: job.Spec}, at(domain.Never))
	f.code(domain.CodeNotFound, err)
	list, err := f.s.ListExecutors(f.ctx, store.ListExecutorsParams{Tenant: f.tenant})
	f.ok(err)
	require.Len(t, list, 1)
	gone, err := f.s.FindInstance(f.ctx, f.tenant, of.instance)
	f.ok(err)
	require.NotZero(t, gone.GoneAt)
	_, renewed, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: of.instance}}, time.Minute)
	f.ok(err)
	require.Empty(t, renewed, "it is told that it is gone")

	// Its name is free, and its runs still say whose they were.
	_, err = f.newExecutor("condemned")
	f.ok(err)
	view, err := f.s.FindExecution(f.ctx, f.tenant, run.ID)
	f.ok(err)
	require.Equal(t, "condemned", view.ExecutorName)

	before := func() time.Time { return f.now().Add(-4 * year) }
	f.ok(f.s.AgeDeleted(f.ctx, 5*year, int64(id)))
	n, err := f.s.DeleteExecutorsBefore(f.ctx, before(), 10)
	f.ok(err)
	require.Zero(t, n, "a run names it")
	rows, err := f.s.RowsOf(f.ctx, int64(id))
	f.ok(err)
	require.Equal(t, 2, rows, "it and its instance")
	empty, err := f.newExecutor("empty")
	f.ok(err)
	f.ok(f.s.DeleteExecutor(f.ctx, store.DeleteExecutorParams{Tenant: f.tenant, ID: empty}))
	n, err = f.s.DeleteExecutorsBefore(f.ctx, before(), 10)
	f.ok(err)
	require.Zero(t, n, "it was deleted lately")
	f.ok(f.s.AgeDeleted(f.ctx, 5*year, int64(empty)))
	n, err = f.s.DeleteExecutorsBefore(f.ctx, before(), 10)
	f.ok(err)
	require.EqualValues(t, 1, n)
	rows, err = f.s.RowsOf(f.ctx, int64(empty))
	f.ok(err)
	require.Zero(t, rows)
	require.Equal(t, kept, bystanders())
}

// testExecutorDeleteRace: a job is made, or the executor is deleted; never both.
func testExecutorDeleteRace(t *testing.T, f *fixture) {
	for i := range 5 {
		id, err := f.newExecutor(fmt.Sprintf("raced-%d", i))
		f.ok(err)
		spec := f.job(nil).Spec
		var made, deleted error
		race(2, func(who int) {
			if who == 0 {
				spec.Name = "raced " + id.String()
				_, made = f.s.CreateJob(f.ctx, domain.Job{ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: id, State: domain.JobEnabled, Spec: spec}, at(domain.Never))
				return
			}
			deleted = f.s.DeleteExecutor(f.ctx, store.DeleteExecutorParams{Tenant: f.tenant, ID: id})
		})
		require.True(t, (made == nil) != (deleted == nil), "%v, %v", made, deleted)
		if deleted != nil {
			f.code(domain.CodeInUse, deleted)
			f.ok(f.rename(id, "kept "+id.String()))
		}
	}
}
