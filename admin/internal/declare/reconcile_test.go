package declare

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/proto"
)

// shop is an executor whose builds come and go.
type shop struct {
	t *testing.T
	d *Declarer
	store.Store
	key  store.ExecutorKey
	ids  *domain.IDSource
	left map[string]bool // builds whose grace has passed
	hide map[string]bool // builds that a node has not heard of yet
	// silent: what registers may declare no jobs
	silent bool
	// strict: what registers is to be taken as a whole or not at all
	strict bool
	// between is called once, after the next plan and before it is written
	between func()
}

// WriteDeclared implements store.Catalogue.
func (s *shop) WriteDeclared(ctx context.Context, tenant domain.TenantID, writes []store.DeclaredWrite) error {
	if between := s.between; between != nil {
		s.between = nil
		between()
	}
	return s.Store.WriteDeclared(ctx, tenant, writes)
}

// ListBuilds implements store.Catalogue with the grace of left builds over.
func (s *shop) ListBuilds(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]domain.Build, error) {
	all, err := s.Store.ListBuilds(ctx, tenant, executor)
	var out []domain.Build
	for _, b := range all {
		if s.left[b.Version] && b.Instances == 0 {
			b.Present = false
		}
		if s.hide[b.Version] {
			delete(s.hide, b.Version) // it is heard of next time
			continue
		}
		out = append(out, b)
	}
	return out, err
}

func newShop(t *testing.T, driver, dsn string) *shop {
	t.Helper()
	ctx := t.Context()
	ids := domain.NewIDSource(9, time.Now)
	options := gormstore.Options{Driver: driver, DSN: dsn, NewID: ids.Next, Logger: slog.New(slog.DiscardHandler), FiresPerMinute: timing.FiresPerMinute}
	require.NoError(t, gormstore.Migrate(ctx, options))
	db, err := gormstore.Open(ctx, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s := &shop{
		t: t, Store: db, ids: ids, left: map[string]bool{}, hide: map[string]bool{},
		key: store.ExecutorKey{Tenant: domain.TenantID(ids.Next()), Executor: domain.ExecutorID(ids.Next())},
	}
	require.NoError(t, db.CreateTenant(ctx, domain.Tenant{ID: s.key.Tenant, Name: "acme"}))
	require.NoError(t, db.CreateExecutor(ctx, domain.Executor{ID: s.key.Executor, TenantID: s.key.Tenant, Name: "shop"}))
	s.d = s.declarer()
	return s
}

func (s *shop) declarer() *Declarer {
	d := New(Options{Store: s, NewID: s.ids.Next, Changed: func() {}, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	d.applied.keep = 0
	return d
}

// register registers an instance of a version whose handler declares jobs.
func (s *shop) register(version string, jobs ...*proto.JobDeclaration) (domain.Instance, []*proto.Notice) {
	s.t.Helper()
	catalogue, err := gproto.Marshal(&proto.Register{AppVersion: version, Strict: s.strict, Handlers: []*proto.Handler{{
		Name: "close-day", Description: "of " + version, InputSchema: []byte(`{"title":"` + version + `"}`), Jobs: jobs,
	}}})
	require.NoError(s.t, err)
	digest := domain.InstanceID(s.ids.Next()).String() // of the boot; that of the build is the version
	i, err := storetest.RegisterInstance(s.t.Context(), s, store.RegisterInstanceParams{
		TTL: time.Minute,
		Instance: domain.Instance{
			ID: domain.InstanceID(s.ids.Next()), TenantID: s.key.Tenant, Executor: s.key.Executor, BootID: digest, Name: version, Build: "build " + version,
		},
		Build: domain.Build{Digest: "build " + version, Version: version, Handlers: []string{"close-day"}, Catalogue: catalogue, NoJobs: s.silent},
	})
	require.NoError(s.t, err)
	return i, s.d.Declare(s.t.Context(), s.key.Tenant, s.key.Executor, "build "+version)
}

// leave stops an instance, and the grace of its build passes.
func (s *shop) leave(version string, i domain.Instance) {
	s.t.Helper()
	require.NoError(s.t, storetest.LeaveInstance(s.t.Context(), s, s.key.Tenant, i.ID, "stopped"))
	s.left[version] = true
	_, err := s.d.reconcile(s.t.Context(), s.key.Tenant, s.key.Executor)
	require.NoError(s.t, err)
}

func (s *shop) job(name string) store.JobView {
	s.t.Helper()
	v, err := s.FindJobByName(s.t.Context(), s.key.Tenant, name)
	require.NoError(s.t, err)
	return v
}

func (s *shop) gone(name string) {
	s.t.Helper()
	_, err := s.FindJobByName(s.t.Context(), s.key.Tenant, name)
	require.True(s.t, domain.Is(err, domain.CodeNotFound), "%v", err)
}

func (s *shop) proposals() []store.ProposalView {
	s.t.Helper()
	list, err := s.ListProposals(s.t.Context(), store.ListProposalsParams{Tenant: s.key.Tenant})
	require.NoError(s.t, err)
	return list.Items
}

// edit changes a job as the console does.
func (s *shop) edit(name string, change func(*domain.JobSpec)) {
	s.t.Helper()
	v := s.job(name)
	change(&v.Spec)
	_, err := s.UpdateJob(s.t.Context(), store.UpdateJobParams{
		Tenant: s.key.Tenant, ID: v.ID, Spec: v.Spec, Source: domain.SourceConsole, DeclarationHash: v.DeclarationHash, By: "anna", Next: timing.Next,
	})
	require.NoError(s.t, err)
}

// daily is a declaration; change may alter it.
func daily(name, hour, ownership string, change ...func(*proto.JobDeclaration)) *proto.JobDeclaration {
	d := &proto.JobDeclaration{Name: name, Description: "daily", Cron: "0 0 " + hour + " * * *", Ownership: ownership}
	for _, c := range change {
		c(d)
	}
	return d
}

func remove(policy string) func(*proto.JobDeclaration) {
	return func(d *proto.JobDeclaration) { d.Removal = policy }
}

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(t *testing.T, s *shop)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newShop(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db"))) })
	t.Run("mysql", func(t *testing.T) { test(t, newShop(t, "mysql", testenv.Database(t))) })
}

// During a rolling deploy both versions register again and again, from many
// nodes: the newer one counts, and each job is written once.
func TestTwoVersionsDoNotTakeTurns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		ownerships := []string{"", "code"}
		both := func(version, hour string) domain.Instance {
			i, notices := s.register(version, daily("until edited", hour, ""), daily("of the code", hour, "code"))
			require.Empty(t, notices)
			return i
		}
		old := []domain.Instance{both("1.9.0", "1"), both("1.9.0", "1")}
		both("1.10.0", "2")
		for range 3 {
			old = append(old, both("1.9.0", "1"))
			both("1.10.0", "2")
		}
		for i, name := range []string{"until edited", "of the code"} {
			j := s.job(name)
			require.Equal(t, "0 0 2 * * *", j.Spec.Schedule.Expr, name)
			require.EqualValues(t, 2, j.Revision, "%s: made by the old version, changed by the new one, and left alone", name)
			require.Equal(t, domain.Ownership(ownerships[i]), j.Declared.Ownership)
			require.Equal(t, "1.10.0", j.Declared.Version)
		}
		h, err := s.FindHandler(t.Context(), s.key.Tenant, s.key.Executor, "close-day")
		require.NoError(t, err)
		require.Equal(t, "of 1.10.0", h.Description, "the newest version's definition")
		for _, i := range old {
			s.leave("1.9.0", i)
		}
		require.EqualValues(t, 2, s.job("of the code").Revision)
	})
}

// A version that is rolled back hands over when its last instance has left.
func TestARollbackTakesEffect(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		s.register("1.2", daily("close", "1", "code"))
		bad, _ := s.register("1.3", daily("close", "2", "code"))
		s.register("1.2", daily("close", "1", "code"))
		require.Equal(t, "0 0 2 * * *", s.job("close").Spec.Schedule.Expr, "both run: the newer one counts")
		s.leave("1.3", bad)
		require.Equal(t, "0 0 1 * * *", s.job("close").Spec.Schedule.Expr)
		require.Equal(t, "1.2", s.job("close").Declared.Version)
		h, err := s.FindHandler(t.Context(), s.key.Tenant, s.key.Executor, "close-day")
		require.NoError(t, err)
		require.Equal(t, "of 1.2", h.Description)
	})
}

// A node that has not heard of the newer version yet does not undo it.
func TestALateNodeDoesNotGoBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		s.register("1.2", daily("close", "1", "code"))
		s.register("1.3", daily("close", "2", "code"))
		require.EqualValues(t, 2, s.job("close").Revision)
		require.NoError(t, s.SettleBuilds(t.Context(), store.SettleBuildsParams{ExecutorKey: s.key, Digests: []string{"none"}}))
		s.hide["1.3"] = true
		s.register("1.2", daily("close", "1", "code"))
		require.EqualValues(t, 2, s.job("close").Revision)
		require.Equal(t, "0 0 2 * * *", s.job("close").Spec.Schedule.Expr)
	})
}

// A build that was forgotten is not taken for a new one.
func TestAForgottenBuild(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		s.register("1.2", daily("close", "1", "code"))
		j := s.job("close")
		j.Declared.Build = "long forgotten"
		require.NoError(t, s.WriteDeclared(t.Context(), s.key.Tenant, []store.DeclaredWrite{{Mark: &store.DeclaredMark{Job: j.ID, Declared: j.Declared}}}))
		s.register("1.3", daily("close", "2", "code"))
		require.Equal(t, "0 0 2 * * *", s.job("close").Spec.Schedule.Expr)
	})
}

func TestTheCodeWins(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		first, _ := s.register("1", daily("close", "1", "code"), daily("mine", "1", ""), daily("yours", "1", "console"))
		for _, name := range []string{"close", "mine", "yours"} {
			s.edit(name, func(j *domain.JobSpec) {
				j.Schedule.Expr, j.Labels = "0 0 9 * * *", map[string]string{"team": "books"}
			})
		}
		_, notices := s.register("2", daily("close", "2", "code"), daily("mine", "2", ""), daily("yours", "2", "console"))
		require.Len(t, notices, 1)
		require.Equal(t, "mine", notices[0].Subject)
		require.Equal(t, "edited_in_console", notices[0].Code)
		require.Equal(t, "0 0 2 * * *", s.job("close").Spec.Schedule.Expr)
		require.Equal(t, "books", s.job("close").Spec.Labels["team"], "labels cannot be declared: they are the console's")
		require.Equal(t, domain.SourceCode, s.job("close").Source)
		require.Equal(t, "0 0 9 * * *", s.job("mine").Spec.Schedule.Expr)
		require.Equal(t, "0 0 9 * * *", s.job("yours").Spec.Schedule.Expr)
		_, notices = s.register("2", daily("close", "2", "code"), daily("mine", "2", ""), daily("yours", "2", "console"))
		require.Len(t, notices, 1, "every instance hears it")

		// What somebody deleted does not come back unless the code owns it.
		for _, name := range []string{"close", "yours"} {
			_, err := s.SetJobState(t.Context(), store.SetJobStateParams{Tenant: s.key.Tenant, ID: s.job(name).ID, State: domain.JobDeleted})
			require.NoError(t, err)
		}
		s.leave("1", first)
		s.register("3", daily("close", "3", "code"), daily("yours", "3", "console"))
		require.Equal(t, "0 0 3 * * *", s.job("close").Spec.Schedule.Expr)
		s.gone("yours")
	})
}

// A version that owns a job replaces an earlier edit and tells its build. After a roll back
// the job has the edit again. A job that was given back follows the code.
func TestAnEditIsBackAfterARollback(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		s.register("1", daily("close", "1", ""), daily("given", "1", ""))
		s.edit("close", func(j *domain.JobSpec) { j.Schedule.Expr = "0 0 9 * * *" })
		s.edit("given", func(j *domain.JobSpec) { j.Schedule.Expr = "0 0 9 * * *" })
		s.giveBack("given")
		edited := s.job("close")
		second, notices := s.register("2", daily("close", "2", "code"), daily("given", "2", "code"))
		require.Equal(t, []string{"close"}, subjects(notices))
		require.Contains(t, notices[0].Message, "has replaced the edit, which is its revision 2")
		require.Empty(t, s.refused(), "it was taken")
		require.Equal(t, "0 0 2 * * *", s.job("close").Spec.Schedule.Expr)
		third, notices := s.register("3", daily("close", "3", "code"), daily("given", "3", "code"))
		require.Empty(t, notices, "once")

		s.leave("3", third)
		require.Equal(t, "0 0 2 * * *", s.job("close").Spec.Schedule.Expr, "the code owns it still")
		s.leave("2", second)
		restored := s.job("close")
		require.Equal(t, edited.Spec, restored.Spec)
		require.Equal(t, domain.SourceConsole, restored.Source)
		require.Zero(t, restored.Declared.Replaced)
		require.Equal(t, []string{"edited_in_console"}, []string{string(s.refused()[0].Code)})
		require.Equal(t, "0 0 1 * * *", s.job("given").Spec.Schedule.Expr)
		s.register("1", daily("close", "1", ""), daily("given", "1", ""))
		require.Equal(t, edited.Spec, s.job("close").Spec)
	})
}

// An executor of which nothing runs keeps its jobs.
func TestNobodyLeftIsNoRemoval(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		only, _ := s.register("1", daily("close", "1", "code", remove("delete")))
		s.leave("1", only)
		require.Equal(t, domain.JobEnabled, s.job("close").State)
		require.False(t, s.job("close").Declared.Gone)
	})
}

func TestCodeProposes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		_, notices := s.register("1", daily("close", "1", "propose"), daily("owned so far", "1", "code"))
		require.Empty(t, notices)
		s.gone("close")
		require.Len(t, s.proposals(), 1)
		p := s.proposals()[0]
		require.Equal(t, "0 0 1 * * *", p.Spec.Schedule.Expr)

		// Accepted, as the API does it.
		id := domain.JobID(s.ids.Next())
		_, err := s.CreateJob(t.Context(), domain.Job{
			ID: id, TenantID: s.key.Tenant, Executor: s.key.Executor, State: domain.JobEnabled, Source: domain.SourceCode, DeclarationHash: p.Hash, Spec: p.Spec,
			Declared: domain.Declared{By: s.key.Executor, Ownership: domain.OwnedPropose, Build: p.Build, Version: p.Version},
		}, timing.Next)
		require.NoError(t, err)
		s.register("2", daily("close", "1", "propose"), daily("owned so far", "1", "propose"))
		require.Empty(t, s.proposals(), "the job is what is proposed; and handing a job over changes nothing of it")
		require.Equal(t, domain.OwnedPropose, s.job("owned so far").Declared.Ownership)

		s.edit("close", func(j *domain.JobSpec) { j.Timeout = time.Minute })
		s.register("3", daily("close", "1", "propose"), daily("owned so far", "2", "propose"))
		require.Len(t, s.proposals(), 1, "the edit stands; what has changed in the code is proposed")
		p = s.proposals()[0]
		require.Equal(t, "owned so far", p.Name)
		require.Equal(t, "0 0 1 * * *", s.job("owned so far").Spec.Schedule.Expr)
		require.NoError(t, s.DeclineProposal(t.Context(), s.key.Tenant, p.ID, p.Hash, "anna"))
		s.register("4", daily("close", "1", "propose"), daily("owned so far", "2", "propose"))
		require.Empty(t, s.proposals(), "declined is declined")
		s.register("5", daily("close", "1", "propose"), daily("owned so far", "3", "propose"))
		require.Len(t, s.proposals(), 1, "but something else may be asked")
		s.register("6", daily("close", "1", "propose"), daily("owned so far", "1", "propose"))
		require.Empty(t, s.proposals(), "the code has come back to what the job is")
	})
}

// A fleet that connects at once asks the database once.
func TestAppliedBuildsAreRemembered(t *testing.T) {
	t.Parallel()
	s := newShop(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db"))
	s.d.applied.keep = time.Hour
	_, notices := s.register("1", daily("a word", "1", "mine"))
	require.Len(t, notices, 1)
	s.d.opt.Store = nil // asking it would panic
	for range 3 {
		require.Equal(t, notices, s.d.Declare(t.Context(), s.key.Tenant, s.key.Executor, "build 1"))
	}
	s.d.opt.Store = s
	_, notices = s.register("2", daily("close", "1", "code"))
	require.Empty(t, notices, "another build is looked at; what version 1 declares is not its fault")
	require.Len(t, s.refused(), 1, "version 1 still runs")
	require.NotNil(t, s.job("close"))
}

func TestWeightsInACatalogue(t *testing.T) {
	t.Parallel()
	catalogue, err := gproto.Marshal(&proto.Register{Handlers: []*proto.Handler{{Name: "heavy", Weight: 3}, {Name: "plain"}, {Name: "one", Weight: 1}}})
	require.NoError(t, err)
	weights, err := Weights(catalogue)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"heavy": 3}, weights)
	_, err = Weights([]byte{0xff})
	require.Error(t, err)
}
