package declare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/proto"
)

// A job is found by the name it is declared by: one that somebody has renamed is not
// made a second time.
func TestRenamedJobsAreNotMadeTwice(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
		}, timing.Next)
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
	t.Parallel()
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
	t.Parallel()
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
		require.Equal(t, "no longer declared by the application, version 2", paused.Pause.Note)
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
	t.Parallel()
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
	t.Parallel()
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
			require.Empty(t, s.job(name).Pause.Note, "it is anna's pause now")
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
			require.Empty(t, s.job(name).Pause.Note, name)
		}
		s.leave("2", second)
	})
}

// What somebody has paused outlasts a roll-back to a version without the job.
func TestPausedJobsAreNotDeleted(t *testing.T) {
	t.Parallel()
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
			require.Equal(t, []any{domain.JobPaused, "holiday", false, "0 0 2 * * *"}, []any{j.State, j.Pause.Note, j.Declared.Gone, j.Spec.Schedule.Expr}, name)
		}
	})
}
