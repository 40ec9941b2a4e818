package admin

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
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/proto"
)

// shop is an executor whose builds come and go.
type shop struct {
	t *testing.T
	d *declarer
	store.Store
	key  store.ExecutorKey
	ids  *domain.IDSource
	left map[string]bool // builds whose grace has passed
	hide map[string]bool // builds that a node has not heard of yet
	// silent: what registers may declare no jobs
	silent bool
	// strict: what registers is to be taken as a whole or not at all
	strict bool
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
	options := gormstore.Options{Driver: driver, DSN: dsn, NewID: ids.Next, Logger: slog.New(slog.DiscardHandler)}
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

func (s *shop) declarer() *declarer {
	return &declarer{
		catalogue: s, jobs: s, handlers: s, calendars: s, newID: s.ids.Next, check: checkSchedule, next: nextFire,
		changed: func() {}, now: time.Now, log: slog.New(slog.DiscardHandler),
	}
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
	return list
}

// edit changes a job as the console does.
func (s *shop) edit(name string, change func(*domain.JobSpec)) {
	s.t.Helper()
	v := s.job(name)
	change(&v.Spec)
	_, err := s.UpdateJob(s.t.Context(), store.UpdateJobParams{
		Tenant: s.key.Tenant, ID: v.ID, Spec: v.Spec, Source: domain.SourceConsole, DeclarationHash: v.DeclarationHash, By: "anna", Next: nextFire(v.ID),
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
	onBoth(t, func(t *testing.T, s *shop) {
		s.register("1.2", daily("close", "1", "code"))
		j := s.job("close")
		j.Declared.Build = "long forgotten"
		require.NoError(t, s.MarkDeclared(t.Context(), s.key.Tenant, j.ID, store.DeclaredMark{Declared: j.Declared}))
		s.register("1.3", daily("close", "2", "code"))
		require.Equal(t, "0 0 2 * * *", s.job("close").Spec.Schedule.Expr)
	})
}

func TestTheCodeWins(t *testing.T) {
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

// A job is found by the name it is declared by: one that somebody has renamed is not
// made a second time.
func TestRenamedJobsAreNotMadeTwice(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		ownerships := map[string]string{"mine": "", "yours": "console", "asked": "propose"}
		all := func(hour string) (list []*proto.JobDeclaration) {
			for name, own := range ownerships {
				list = append(list, daily(name, hour, own))
			}
			return list
		}
		s.register("0", daily("asked", "1", "code"))
		first, _ := s.register("1", all("1")...)
		for name := range ownerships {
			s.edit(name, func(j *domain.JobSpec) { j.Name = "renamed " + name })
		}
		_, notices := s.register("2", all("1")...) // nothing has changed in the code
		require.Empty(t, notices)
		for name := range ownerships {
			s.gone(name)
		}
		_, notices = s.register("3", all("2")...)
		require.Equal(t, []string{"mine"}, subjects(notices))
		require.Equal(t, "edited_in_console", notices[0].Code)
		require.Contains(t, notices[0].Message, `"mine", which is called "renamed mine" now`)
		for name := range ownerships {
			s.gone(name)
			require.Equal(t, "0 0 1 * * *", s.job("renamed "+name).Spec.Schedule.Expr)
			require.False(t, s.job("renamed "+name).Declared.Gone)
		}
		require.Len(t, s.proposals(), 1)
		require.Equal(t, s.job("renamed asked").ID, s.proposals()[0].Job.ID)

		// Given back, it has the name of the code again.
		s.giveBack("renamed mine")
		s.gone("renamed mine")
		require.Equal(t, "0 0 2 * * *", s.job("mine").Spec.Schedule.Expr)
		s.leave("1", first)
	})
}

// A job that was renamed is not taken for another one that the code declares by its
// new name; when the code renames it too, it is that one.
func TestRenamedToANameOfTheCode(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		first, _ := s.register("1", daily("a", "1", ""))
		id := s.job("a").ID
		s.edit("a", func(j *domain.JobSpec) { j.Name = "b" })
		second, notices := s.register("2", daily("a", "1", ""), daily("b", "5", "code"))
		require.Equal(t, []string{"b"}, subjects(notices))
		require.Equal(t, "conflict", notices[0].Code)
		require.Contains(t, notices[0].Message, `declares as "a"`)
		s.register("3", daily("b", "1", ""))
		s.leave("1", first)
		s.leave("2", second)
		require.Equal(t, id, s.job("b").ID)
		require.Equal(t, "b", s.job("b").Declared.Name)
		s.gone("a")
	})
}

func (s *shop) delete(name string) {
	s.t.Helper()
	_, err := s.SetJobState(s.t.Context(), store.SetJobStateParams{Tenant: s.key.Tenant, ID: s.job(name).ID, State: domain.JobDeleted, By: "anna"})
	require.NoError(s.t, err)
}

// What somebody deleted stays deleted, whatever the next versions declare, until
// somebody makes a job of that name.
func TestDeletedJobsStayDeleted(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		names := []string{"edited", "renamed", "untouched"}
		all := func(hour string) (list []*proto.JobDeclaration) {
			for _, name := range names {
				list = append(list, daily(name, hour, "", remove("delete")))
			}
			return list
		}
		s.register("1", all("1")...)
		s.edit("edited", func(j *domain.JobSpec) { j.Priority = 3 })
		s.edit("renamed", func(j *domain.JobSpec) { j.Name = "another name" })
		spec := s.job("untouched").Spec
		s.delete("edited")
		s.delete("another name")
		s.delete("untouched")
		for i, version := range []string{"2", "3"} { // as before, and changed
			_, notices := s.register(version, all([]string{"1", "2"}[i])...)
			require.Equal(t, names, subjects(notices), version)
			require.Equal(t, "edited_in_console", notices[0].Code)
			require.Contains(t, notices[0].Message, "was deleted in the console")
		}
		for _, name := range names {
			s.gone(name)
		}

		id := domain.JobID(s.ids.Next())
		_, err := s.CreateJob(t.Context(), domain.Job{
			ID: id, TenantID: s.key.Tenant, Executor: s.key.Executor, State: domain.JobEnabled, Source: domain.SourceConsole, Spec: spec, CreatedBy: "anna",
		}, nextFire(id))
		require.NoError(t, err)
		s.register("4", all("2")...)
		s.giveBack("untouched")
		require.Equal(t, id, s.job("untouched").ID)
		require.Equal(t, "0 0 2 * * *", s.job("untouched").Spec.Schedule.Expr)
		require.Equal(t, domain.SourceCode, s.job("untouched").Source)
	})
}

// What the code itself has removed comes back when it declares it again, also if
// somebody had deleted it once and made it anew.
func TestRemovedByTheCodeComesBack(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		first, _ := s.register("1", daily("close", "1", "", remove("delete")))
		s.delete("close")
		second, _ := s.register("2", daily("close", "1", "code", remove("delete")))
		require.Equal(t, domain.JobEnabled, s.job("close").State, "the code decides")
		third, _ := s.register("3")
		s.leave("1", first)
		s.leave("2", second)
		s.gone("close")
		_, notices := s.register("4", daily("close", "1", "", remove("delete")))
		require.Empty(t, notices)
		require.Equal(t, domain.JobEnabled, s.job("close").State)
		s.leave("3", third)
	})
}

func TestRemovedFromTheCode(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		all := []*proto.JobDeclaration{
			daily("paused", "1", "code"), daily("deleted", "1", "code", remove("delete")), daily("kept", "1", "code", remove("keep")),
			daily("nothing said", "1", ""), daily("edited", "1", "", remove("delete")), daily("stopped by anna", "1", "code"),
		}
		old, notices := s.register("1", all...)
		require.Empty(t, notices)
		s.edit("edited", func(j *domain.JobSpec) { j.Priority = 3 })
		_, err := s.SetJobState(t.Context(), store.SetJobStateParams{Tenant: s.key.Tenant, ID: s.job("stopped by anna").ID, State: domain.JobPaused, By: "anna"})
		require.NoError(t, err)
		s.register("2")
		require.Equal(t, domain.JobEnabled, s.job("paused").State, "version 1 runs and declares it")
		s.leave("1", old)

		paused := s.job("paused")
		require.Equal(t, domain.JobPaused, paused.State)
		require.Equal(t, "no longer declared by the application, version 2", paused.PauseNote)
		require.True(t, paused.Declared.Gone)
		require.False(t, paused.Declared.LocksConsole())
		s.gone("deleted")
		for _, name := range []string{"kept", "nothing said", "edited"} {
			require.Equal(t, domain.JobEnabled, s.job(name).State, name)
			require.True(t, s.job(name).Declared.Gone, name)
		}
		revisions := s.job("paused").Revision

		// It is declared again: what was paused for that goes on, what a person
		// paused does not.
		_, notices = s.register("3", all...)
		require.Len(t, notices, 0)
		require.Equal(t, domain.JobEnabled, s.job("paused").State)
		require.False(t, s.job("paused").Declared.Gone)
		require.Equal(t, revisions, s.job("paused").Revision)
		require.Equal(t, domain.JobPaused, s.job("stopped by anna").State)
		require.Equal(t, domain.JobEnabled, s.job("deleted").State)
	})
}

// An edited job that is declared again is not taken back, and says so.
func TestEditedAndDeclaredAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		first, _ := s.register("1", daily("close", "1", ""))
		s.edit("close", func(j *domain.JobSpec) { j.Priority = 3 })
		s.register("2")
		s.leave("1", first)
		require.True(t, s.job("close").Declared.Gone)
		for range 2 {
			_, notices := s.register("3", daily("close", "2", ""))
			require.Equal(t, []string{"close"}, subjects(notices))
		}
		j := s.job("close")
		require.Equal(t, []any{false, "3", int64(2)}, []any{j.Declared.Gone, j.Declared.Version, j.Revision})
		require.Equal(t, "0 0 1 * * *", j.Spec.Schedule.Expr)
	})
}

// A job that was paused for being declared by nobody goes on when it is declared
// again, also if somebody has edited it meanwhile, but not if somebody has paused it.
func TestPausedForBeingGone(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		all := func(hour string) []*proto.JobDeclaration {
			return []*proto.JobDeclaration{
				daily("labelled", hour, "code"), daily("edited", hour, "", remove("pause")), daily("stopped", hour, "code"), daily("stopped and edited", hour, "code"),
			}
		}
		first, _ := s.register("1", all("1")...)
		second, _ := s.register("2")
		s.leave("1", first)
		label := func(j *domain.JobSpec) { j.Labels = map[string]string{"team": "books"} }
		for _, name := range []string{"stopped", "stopped and edited"} {
			_, err := s.SetJobState(t.Context(), store.SetJobStateParams{Tenant: s.key.Tenant, ID: s.job(name).ID, State: domain.JobPaused, By: "anna"})
			require.NoError(t, err)
			require.Empty(t, s.job(name).PauseNote, "it is anna's pause now")
		}
		for _, name := range []string{"labelled", "edited", "stopped and edited"} {
			s.edit(name, label)
		}
		require.Equal(t, domain.JobPaused, s.job("labelled").State)
		s.register("3", all("2")...)
		for name, want := range map[string]domain.JobState{
			"labelled": domain.JobEnabled, "edited": domain.JobEnabled, "stopped": domain.JobPaused, "stopped and edited": domain.JobPaused,
		} {
			require.Equal(t, want, s.job(name).State, name)
			require.Empty(t, s.job(name).PauseNote, name)
		}
		s.leave("2", second)
	})
}

// What somebody has paused outlasts a roll-back to a version without the job.
func TestPausedJobsAreNotDeleted(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		first, _ := s.register("1", daily("close", "1", "code", remove("delete")), daily("mine", "1", "", remove("delete")))
		for _, name := range []string{"close", "mine"} {
			_, err := s.SetJobState(t.Context(), store.SetJobStateParams{Tenant: s.key.Tenant, ID: s.job(name).ID, State: domain.JobPaused, By: "anna", Note: "holiday"})
			require.NoError(t, err)
		}
		s.register("2")
		s.leave("1", first)
		s.register("3", daily("close", "2", "code", remove("delete")), daily("mine", "2", "", remove("delete")))
		for _, name := range []string{"close", "mine"} {
			j := s.job(name)
			require.Equal(t, []any{domain.JobPaused, "holiday", false, "0 0 2 * * *"}, []any{j.State, j.PauseNote, j.Declared.Gone, j.Spec.Schedule.Expr}, name)
		}
	})
}

// A strict build of whose jobs one is refused changes no job, and no other version
// takes turns with it.
func TestStrictBuildsChangeNothingWhenRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		old := []*proto.JobDeclaration{daily("a", "1", "code"), daily("dropped", "1", "code", remove("delete"))}
		first, _ := s.register("1", old...)
		s.strict = true
		olds, news := []domain.Instance{first}, []domain.Instance(nil)
		refusedOne := func() {
			t.Helper()
			i, notices := s.register("2", daily("a", "2", "code"), daily("b", "2", "code"), daily("bad", "25", "code"))
			require.Equal(t, []string{"bad"}, subjects(notices))
			news = append(news, i)
		}
		for range 2 {
			refusedOne()
			s.strict = false
			i, notices := s.register("1", old...)
			require.Empty(t, notices)
			olds, s.strict = append(olds, i), true
		}
		require.Equal(t, "bad", s.refused()[0].Name)
		require.Equal(t, []any{"0 0 1 * * *", int64(1)}, []any{s.job("a").Spec.Schedule.Expr, s.job("a").Revision})
		s.gone("b")

		// Also when it is alone.
		for _, i := range olds {
			s.leave("1", i)
		}
		refusedOne()
		require.EqualValues(t, 1, s.job("a").Revision)
		require.Equal(t, domain.JobEnabled, s.job("dropped").State)
		s.gone("b")

		for _, i := range news {
			s.leave("2", i)
		}
		_, notices := s.register("3", daily("a", "3", "code"), daily("b", "3", "code"))
		require.Empty(t, notices)
		require.Empty(t, s.refused())
		require.Equal(t, "0 0 3 * * *", s.job("a").Spec.Schedule.Expr)
		require.NotNil(t, s.job("b"))
	})
}

// What is edited is no refusal; and a strict build that is in force is not held back.
func TestStrictBuildsInForce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		s.strict = true
		s.register("1", daily("a", "1", "code"), daily("mine", "1", ""))
		s.edit("mine", func(j *domain.JobSpec) { j.Priority = 3 })
		_, notices := s.register("2", daily("a", "2", "code"), daily("mine", "2", ""))
		require.Equal(t, []string{"mine"}, subjects(notices))
		require.Equal(t, "0 0 2 * * *", s.job("a").Spec.Schedule.Expr)
	})
}

// An executor of which nothing runs keeps its jobs.
func TestNobodyLeftIsNoRemoval(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		only, _ := s.register("1", daily("close", "1", "code", remove("delete")))
		s.leave("1", only)
		require.Equal(t, domain.JobEnabled, s.job("close").State)
		require.False(t, s.job("close").Declared.Gone)
	})
}

func TestCodeProposes(t *testing.T) {
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
		}, nextFire(id))
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

func TestDeclarationsThatAreNotTaken(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		_, notices := s.register("1", daily("fine", "1", "code"), daily("a word", "1", "mine"), daily("another", "1", "", remove("burn")), daily("an hour", "25", "code"))
		require.Len(t, notices, 3)
		require.Equal(t, []string{"a word", "an hour", "another"}, []string{notices[0].Subject, notices[1].Subject, notices[2].Subject})
		require.Contains(t, notices[0].Message, "code, console, propose")
		require.NotNil(t, s.job("fine"))
		s.gone("an hour")
		refused := s.refused()
		require.Len(t, refused, 3)
		for i, r := range refused {
			require.Equal(t, notices[i].Subject, r.Name)
			require.Equal(t, notices[i].Message, r.Message)
			require.Equal(t, notices[i].Code, string(r.Code))
			require.Equal(t, "1", r.Version)
		}

		s.register("2", daily("fine", "1", "code"), daily("a word", "1", "code"), daily("another", "1", "mine"))
		refused = s.refused()
		require.Len(t, refused, 2)
		require.Equal(t, []string{"an hour", "1", "another", "2"}, []string{refused[0].Name, refused[0].Version, refused[1].Name, refused[1].Version})
	})
}

// A build is told about what it declares itself: an old version that starts again
// beside a newer one is not to blame for that one's jobs.
func TestNoticesAreOfTheBuildItself(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		_, notices := s.register("1", daily("both", "25", "code"), daily("old", "25", "code"), daily("changed", "1", "code"))
		require.Equal(t, []string{"both", "old"}, subjects(notices))
		_, notices = s.register("2", daily("both", "25", "code"), daily("new", "25", "code"), daily("changed", "26", "code"))
		require.Equal(t, []string{"both", "changed", "new"}, subjects(notices))
		_, notices = s.register("1", daily("both", "25", "code"), daily("old", "25", "code"), daily("changed", "1", "code"))
		require.Equal(t, []string{"both", "old"}, subjects(notices))
	})
}

func subjects(notices []*proto.Notice) (out []string) {
	for _, n := range notices {
		out = append(out, n.Subject)
	}
	return out
}

// Callbacks and hooks have to be handlers of the executor, as for jobs that are
// made in the console.
func TestDeclaredCallbacksThatNoHandlerIs(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		other := domain.ExecutorID(s.ids.Next())
		require.NoError(t, s.CreateExecutor(t.Context(), domain.Executor{ID: other, TenantID: s.key.Tenant, Name: "bank"}))
		require.NoError(t, s.DefineHandlers(t.Context(), s.key.Tenant, other, []domain.Handler{{Name: "elsewhere"}}))
		set := func(change func(*proto.JobDeclaration)) func(*proto.JobDeclaration) { return change }
		_, notices := s.register("1",
			daily("a", "1", "code", set(func(d *proto.JobDeclaration) { d.OnFailure = "elsewhere" })),
			daily("b", "1", "code", set(func(d *proto.JobDeclaration) { d.OnSuccess = "nowhere" })),
			daily("c", "1", "code", set(func(d *proto.JobDeclaration) {
				d.Sharding = &proto.Sharding{Mode: "fixed", Shards: 2, After: "nowhere"}
			})),
			daily("d", "1", "code", set(func(d *proto.JobDeclaration) { d.OnSuccess, d.OnFailure = "close-day", "close-day" })))
		require.Equal(t, []string{"a", "b", "c"}, subjects(notices))
		for i, field := range []string{"job.onFailure", "job.onSuccess", "job.sharding.after"} {
			require.Equal(t, "unknown_handler", notices[i].Code)
			require.Contains(t, notices[i].Message, field+": the executor has no handler")
		}
		s.gone("a")
		require.Equal(t, "close-day", s.job("d").Spec.OnFailure)
	})
}

// What a quota does not allow is told as all else that is not taken, and the next
// registration tries again.
func TestDeclarationsOverTheQuota(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		limit := func(jobs int64) {
			p := store.SetQuotasParams{Tenant: s.key.Tenant, Max: map[domain.QuotaKind]int64{domain.QuotaJobs: jobs}}
			require.NoError(t, s.SetQuotas(t.Context(), p))
		}
		limit(1)
		_, notices := s.register("1", daily("a", "1", "code"), daily("b", "2", "code"))
		require.Len(t, notices, 1)
		require.Equal(t, []string{"b", "quota_exceeded"}, []string{notices[0].Subject, notices[0].Code})
		require.Equal(t, notices[0].Message, s.refused()[0].Message)
		require.NotNil(t, s.job("a"))
		s.gone("b")
		limit(2)
		s.register("1", daily("a", "1", "code"), daily("b", "2", "code"))
		require.Empty(t, s.refused())
		require.NotNil(t, s.job("b"))
	})
}

// Jobs of builds that may declare none are refused unless another build that may
// has them; those that are there stay, also when nobody may declare them.
func TestBuildsThatMayNotDeclare(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		s.register("1", daily("a", "1", "code", remove("delete")))
		before := s.job("a")
		s.silent = true
		second, notices := s.register("2", daily("a", "2", "code", remove("delete")), daily("b", "2", "code"))
		require.Len(t, notices, 1)
		require.Equal(t, []string{"b", "permission_denied"}, []string{notices[0].Subject, notices[0].Code})
		require.Equal(t, before.Spec.Schedule.Expr, s.job("a").Spec.Schedule.Expr)
		s.gone("b")
		s.leave("2", second)
		require.Empty(t, s.refused())

		_, notices = s.register("3", daily("a", "3", "code", remove("delete")))
		require.Empty(t, notices, "version 1 is there, and may")
		s.silent = false
		s.register("3", daily("a", "3", "code", remove("delete")))
		require.NotEqual(t, before.Spec.Schedule.Expr, s.job("a").Spec.Schedule.Expr, "one of the build may")
	})
}

// refused is what an operator sees of the jobs that were not taken.
func (s *shop) refused() []domain.RefusedDeclaration {
	list, err := s.ListRefusedDeclarations(s.t.Context(), s.key.Tenant, s.key.Executor)
	require.NoError(s.t, err)
	return list
}

// What the API refuses is refused of code too, and its author is told where:
// before, the half that the kind does not use was ignored in silence.
func TestDeclarationsThatContradictThemselves(t *testing.T) {
	s := newShop(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db"))
	declare := func(d *proto.JobDeclaration) (own []*proto.Notice) {
		d.Name = domain.JobID(s.ids.Next()).String()
		_, notices := s.register(d.Name, d)
		for _, n := range notices { // those before hear it again
			if n.Subject == d.Name {
				own = append(own, n)
				s.gone(d.Name)
			}
		}
		return own
	}
	for want, d := range map[string]*proto.JobDeclaration{
		"job.schedule.jitter: is longer than every, so that runs would overtake each other; at most 1m": {EveryMs: 60_000, JitterMs: 60_001},
		"job.misfire.maxRuns: needs the policy all; leave it out for once_now":                          {Cron: "0 2 * * *", Misfire: "once_now", MisfireMaxRuns: 3},
		"job.misfire.window: needs the policy all; leave it out for skip":                               {Cron: "0 2 * * *", MisfireWindowMs: 1},
		"job.parallelism: needs blocking parallel; leave it out for serial":                             {Parallelism: 2, Blocking: "serial"},
		"job.schedule.every: is for schedules of kind fixed_rate, fixed_delay, daily_window; leave it out for cron": {
			Cron: "0 2 * * *", DelayMs: 1000,
		},
		"job.schedule.windowFrom: is for schedules of kind daily_window; leave it out for cron":          {Cron: "0 2 * * *", WindowFrom: "08:00"},
		"job.schedule.at: is for schedules of kind once; leave it out for fixed_rate":                    {EveryMs: 1000, AtMs: 1_800_000_000_000},
		"job.schedule.every: every_ms and delay_ms exclude each other":                                   {EveryMs: 1000, DelayMs: 1000},
		"job.schedule.every: is for schedules of kind fixed_rate, fixed_delay, daily_window; leave it o": {AtMs: 1_800_000_000_000, Cron: "0 2 * * *", EveryMs: 1},
		"job.schedule.dstGap: is for schedules of kind cron, daily_window; leave it out for fixed_rate":  {EveryMs: 1000, DstGap: "skip"},
		"job.schedule.dstOverlap: is for schedules of kind cron; leave it out for daily_window": {
			EveryMs: 1000, WindowFrom: "08:00", WindowTo: "10:00", DstOverlap: "both",
		},
		"job.schedule.calendarDays: needs calendars; leave it out":    {EveryMs: 1000, CalendarDays: "workdays"},
		"job.schedule.endAt: is before startAt":                       {EveryMs: 1000, StartAtMs: 1_800_000_000_000, EndAtMs: 1_700_000_000_000},
		"job.schedule.endAt: must lie in the years from 1970 to 9998": {EveryMs: 1000, EndAtMs: domain.Never.UnixMilli()},
	} {
		notices := declare(d)
		require.Len(t, notices, 1, want)
		require.Equal(t, "validation_failed", notices[0].Code)
		require.Contains(t, notices[0].Message, want)
	}
	both := declare(&proto.JobDeclaration{EveryMs: 1000, JitterMs: 2000, MisfireMaxRuns: 1})
	require.Contains(t, both[0].Message, "at most 1s; job.misfire.maxRuns: needs", "all that is wrong at once")
	for _, d := range []*proto.JobDeclaration{
		{EveryMs: 1000, JitterMs: 1000}, {Cron: "0 2 * * *", Misfire: "all", MisfireMaxRuns: 3, MisfireWindowMs: 1000},
		{EveryMs: 1000, DstGap: "run_at_gap_end", DstOverlap: "once"}, // executor.ClockChanges names both
		{EveryMs: 1000, WindowFrom: "08:00", WindowTo: "10:00", DstGap: "skip", DstOverlap: "once"},
	} {
		require.Empty(t, declare(d))
	}
}

// A job that was declared so before stays as it is until its declaration changes.
func TestDeclaredContradictionsOfBeforeStay(t *testing.T) {
	s := newShop(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db"))
	d := daily("close", "1", "code")
	s.register("1", d)
	d.MisfireMaxRuns = 3
	hash, err := declarationHash("close-day", d)
	require.NoError(t, err)
	j := s.job("close")
	j.Spec.Misfire.MaxRuns = 3
	_, err = s.UpdateJob(t.Context(), store.UpdateJobParams{
		Tenant: s.key.Tenant, ID: j.ID, Spec: j.Spec, Source: domain.SourceCode, DeclarationHash: hash, Declared: &j.Declared, By: declaredBy, Next: nextFire(j.ID),
	})
	require.NoError(t, err)
	_, notices := s.register("2", d)
	require.Empty(t, notices)
	require.EqualValues(t, 2, s.job("close").Revision)
	d.MisfireMaxRuns = 4
	_, notices = s.register("3", d)
	require.Len(t, notices, 1)
	require.Equal(t, 3, s.job("close").Spec.Misfire.MaxRuns)
}

// A fleet that connects at once asks the database once.
func TestAppliedBuildsAreRemembered(t *testing.T) {
	s := newShop(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db"))
	s.d.applied.keep = time.Hour
	_, notices := s.register("1", daily("a word", "1", "mine"))
	require.Len(t, notices, 1)
	s.d.catalogue = nil // asking it would panic
	for range 3 {
		require.Equal(t, notices, s.d.Declare(t.Context(), s.key.Tenant, s.key.Executor, "build 1"))
	}
	s.d.catalogue = s
	_, notices = s.register("2", daily("close", "1", "code"))
	require.Empty(t, notices, "another build is looked at; what version 1 declares is not its fault")
	require.Len(t, s.refused(), 1, "version 1 still runs")
	require.NotNil(t, s.job("close"))
}

func TestWeightsInACatalogue(t *testing.T) {
	catalogue, err := gproto.Marshal(&proto.Register{Handlers: []*proto.Handler{{Name: "heavy", Weight: 3}, {Name: "plain"}, {Name: "one", Weight: 1}}})
	require.NoError(t, err)
	weights, err := weightsIn(catalogue)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"heavy": 3}, weights)
	_, err = weightsIn([]byte{0xff})
	require.Error(t, err)
}
