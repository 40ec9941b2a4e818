package domain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestCompareBuilds(t *testing.T) {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	build := func(version string, generation int64, hour int) domain.Build {
		return domain.Build{Version: version, Generation: generation, FirstSeenAt: day.Add(time.Duration(hour) * time.Hour)}
	}
	// Oldest first.
	order := []domain.Build{
		build("", 0, 8), build("feature-x", 0, 9), build("1.2.3.4", 0, 10),
		build("0.9", 0, 11), build("1.0.0-alpha", 0, 7), build("1.0.0-alpha.1", 0, 7), build("1.0.0-alpha.beta", 0, 7),
		build("1.0.0-beta.2", 0, 7), build("1.0.0-beta.11", 0, 7), build("v1.0.0-rc.1+9f3", 0, 7), build("1.0.0", 0, 7),
		build("v1.0.0+build", 0, 8), build("1.2.3", 0, 6), build("1.10.0", 0, 5),
		build("", 7, 1), build("0.1", 7, 0), build("0.1", 8, 0),
	}
	for i := range order {
		for j := range order {
			require.Equal(t, i < j, domain.CompareBuilds(&order[i], &order[j]) < 0, "%d %+v and %d %+v", i, order[i], j, order[j])
			require.Equal(t, i == j, domain.CompareBuilds(&order[i], &order[j]) == 0)
		}
	}
	twins := []domain.Build{{Digest: "b", FirstSeenAt: day}, {Digest: "a", FirstSeenAt: day}}
	require.Positive(t, domain.CompareBuilds(&twins[0], &twins[1]), "two of one instant have an order too")
}

func TestPresentBuilds(t *testing.T) {
	builds := []domain.Build{{Version: "1.3", Present: true}, {Version: "1.4"}, {Version: "1.2", Present: true, Applied: true}}
	got := domain.PresentBuilds(builds)
	require.Equal(t, []string{"1.2", "1.3"}, []string{got[0].Version, got[1].Version})
	require.False(t, domain.SettledBuilds(builds))
	builds[0].Applied = true
	require.True(t, domain.SettledBuilds(builds))
	builds[0].Present = false
	require.False(t, domain.SettledBuilds(builds), "one has left")
	builds[2].Present = false
	require.True(t, domain.SettledBuilds(builds), "all have left: what was in force stays")
	require.True(t, domain.SettledBuilds(nil))
	require.True(t, slices.IsSortedFunc(got, func(a, b domain.Build) int { return domain.CompareBuilds(&a, &b) }))
}

func TestDecideDeclaration(t *testing.T) {
	const shop, other = domain.ExecutorID(1), domain.ExecutorID(2)
	declared := func(own domain.Ownership, removal domain.Removal) domain.Declared {
		return domain.Declared{By: shop, Ownership: own, Removal: removal, Build: "new", Version: "2"}
	}
	job := func(change ...func(*domain.Job)) *domain.Job {
		j := &domain.Job{Executor: shop, Source: domain.SourceCode, DeclarationHash: "h1", Spec: domain.JobSpec{Name: "close-day"}}
		for _, c := range change {
			c(j)
		}
		return j
	}
	as := func(d domain.Declared) func(*domain.Job) {
		d.Build, d.Version = "old", "1"
		return func(j *domain.Job) { j.Declared = d }
	}
	edited := func(j *domain.Job) { j.Source = domain.SourceConsole }
	foreign := func(j *domain.Job) { j.Executor = other }
	const until, code, console, propose = domain.OwnedUntilEdited, domain.OwnedByCode, domain.OwnedByConsole, domain.OwnedPropose
	for _, row := range []struct {
		name    string
		own     domain.Ownership
		hash    string
		found   *domain.Job
		deleted bool
		want    domain.DeclareStep
		refused bool
	}{
		{"unknown", until, "h1", nil, false, domain.DeclareCreate, false},
		{"unknown, of the code", code, "h1", nil, false, domain.DeclareCreate, false},
		{"unknown, of the console", console, "h1", nil, false, domain.DeclareCreate, false},
		{"unknown, proposed", propose, "h1", nil, false, domain.DeclarePropose, false},
		{"deleted, of the code: it comes back", code, "h1", nil, true, domain.DeclareCreate, false},
		{"deleted, of the console: it stays away", console, "h2", nil, true, domain.DeclareNothing, false},
		{"deleted, follows until edited: it stays away, with a word", until, "h1", nil, true, domain.DeclareNothing, true},
		{"deleted, proposed: nobody is asked again", propose, "h2", nil, true, domain.DeclareNothing, false},
		{"another executor's", code, "h1", job(foreign), false, domain.DeclareNothing, true},
		{"unchanged", until, "h1", job(as(declared(until, ""))), false, domain.DeclareNothing, false},
		{"changed", until, "h2", job(as(declared(until, ""))), false, domain.DeclareUpdate, false},
		{"changed after an edit", until, "h2", job(as(declared(until, "")), edited), false, domain.DeclareNothing, true},
		{"changed after an edit, declared again", until, "h2", job(as(domain.Declared{By: shop, Gone: true}), edited), false, domain.DeclareMark, true},
		{"made by somebody, whom the code does not know", until, "h2", job(edited), false, domain.DeclareMark, true},
		{"unchanged after an edit", until, "h1", job(as(declared(until, "")), edited), false, domain.DeclareNothing, false},
		{"code: unchanged", code, "h1", job(as(declared(code, ""))), false, domain.DeclareNothing, false},
		{"code: changed", code, "h2", job(as(declared(code, ""))), false, domain.DeclareUpdate, false},
		{"code takes over what was edited", code, "h2", job(as(declared(until, "")), edited), false, domain.DeclareUpdate, false},
		{"code takes over the console's own", code, "h2", job(edited), false, domain.DeclareUpdate, false},
		{"code: declared again", code, "h1", job(as(domain.Declared{By: shop, Ownership: code, Gone: true})), false, domain.DeclareMark, false},
		{"console: changed, for the first time", console, "h2", job(as(declared(console, "")), edited), false, domain.DeclareMark, false},
		{"console: unchanged", console, "h1", job(as(declared(console, "")), edited), false, domain.DeclareNothing, false},
		{"propose: changed", propose, "h2", job(as(declared(propose, "")), edited), false, domain.DeclarePropose, false},
		{"propose: accepted, then edited", propose, "h1", job(as(declared(propose, "")), edited), false, domain.DeclareNothing, false},
		{"handed over to proposals", propose, "h1", job(as(declared(code, ""))), false, domain.DeclareMark, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := domain.Declaration{Executor: shop, Declared: declared(row.own, ""), Hash: row.hash}
			step, err := domain.DecideDeclaration(d, row.found, "other", row.deleted)
			require.Equal(t, row.refused, err != nil, "%v", err)
			require.Equal(t, row.want, step)
		})
	}
}

func TestDecideRemoval(t *testing.T) {
	const code, until = domain.OwnedByCode, domain.OwnedUntilEdited
	for _, row := range []struct {
		name    string
		own     domain.Ownership
		removal domain.Removal
		source  domain.Source
		want    domain.Removal
	}{
		{"the code's pauses", code, "", domain.SourceCode, domain.RemovalPause},
		{"the code's is deleted when it says so", code, domain.RemovalDelete, domain.SourceCode, domain.RemovalDelete},
		{"the code's stays when it says so", code, domain.RemovalKeep, domain.SourceCode, domain.RemovalKeep},
		{"nothing said", until, "", domain.SourceCode, domain.RemovalKeep},
		{"until edited, to be paused", until, domain.RemovalPause, domain.SourceCode, domain.RemovalPause},
		{"edited meanwhile", until, domain.RemovalPause, domain.SourceConsole, domain.RemovalKeep},
		{"the console's", domain.OwnedByConsole, domain.RemovalDelete, domain.SourceCode, domain.RemovalKeep},
		{"proposed", domain.OwnedPropose, domain.RemovalDelete, domain.SourceCode, domain.RemovalKeep},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := &domain.Job{Source: row.source, Declared: domain.Declared{By: 1, Ownership: row.own, Removal: row.removal}}
			require.Equal(t, row.want, domain.DecideRemoval(j))
		})
	}
	paused := &domain.Job{State: domain.JobPaused, Source: domain.SourceCode, Declared: domain.Declared{By: 1, Ownership: code, Removal: domain.RemovalDelete}}
	require.Equal(t, domain.RemovalKeep, domain.DecideRemoval(paused), "somebody paused it")
	paused.Held = true
	require.Equal(t, domain.RemovalDelete, domain.DecideRemoval(paused), "its executor is disabled")
}

func TestCheckDeclaration(t *testing.T) {
	require.NoError(t, domain.CheckDeclaration(domain.Declared{Ownership: domain.OwnedPropose, Removal: domain.RemovalDelete}))
	require.NoError(t, domain.CheckDeclaration(domain.Declared{}))
	require.Error(t, domain.CheckDeclaration(domain.Declared{Ownership: "mine"}))
	require.Error(t, domain.CheckDeclaration(domain.Declared{Removal: "burn"}))
}
