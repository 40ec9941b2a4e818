package noun

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// played is an incident whose messages a test reads: it is looked at whenever it
// wants to be.
type played struct {
	t     *testing.T
	i     *Incident
	p     TellPolicy
	now   time.Time
	event int64
	told  []string
}

func play(t *testing.T, kind domain.AlertKind) *played {
	t.Helper()
	return &played{t: t, i: &Incident{ID: 7, Key: "k", Live: true, Kind: kind, Job: 1}, p: DefaultTellPolicy, now: time.Unix(1e9, 0).UTC()}
}

// happen lets n events happen now.
func (p *played) happen(n int) {
	require.True(p.t, p.i.Live, "the next event is another incident's")
	for range n {
		p.event++
		p.i.Add(&domain.AlertEvent{ID: p.event, Kind: p.i.Kind, JobID: 1}, "job", p.now)
	}
	p.i.Schedule(p.now, &p.p, Wishes{Fresh: true})
}

// recover ends it now.
func (p *played) recover() {
	p.i.Resolve(p.now, "")
	p.i.Schedule(p.now, &p.p, Wishes{})
}

// pass lets time pass, and looks at the incident when it is due.
func (p *played) pass(d time.Duration) {
	p.t.Helper()
	end := p.now.Add(d)
	for n := 0; p.i.Live && !p.i.WakeAt.After(end); n++ {
		require.Less(p.t, n, 100_000, "it wants to be looked at all the time")
		require.False(p.t, p.i.WakeAt.IsZero())
		p.now = p.i.WakeAt
		if !p.i.NextTell(&p.p).After(p.now) {
			p.i.Tell(p.now)
			p.told = append(p.told, p.i.State.String())
		}
		p.i.Schedule(p.now, &p.p, Wishes{})
		require.True(p.t, !p.i.Live || p.i.WakeAt.After(p.now), "the look changed nothing")
	}
	p.now = end
}

func TestAnIncidentIsToldOnceAndItsEnd(t *testing.T) {
	p := play(t, domain.AlertRunFailed)
	p.happen(3)
	p.pass(2 * time.Second)
	require.Equal(t, []string{"open"}, p.told)
	require.EqualValues(t, 3, p.i.ToldEvents)
	p.pass(24 * time.Hour)
	require.Equal(t, []string{"open"}, p.told, "nothing new")
	p.recover()
	p.pass(time.Second)
	require.Equal(t, []string{"open", "resolved"}, p.told)
	p.pass(time.Hour)
	require.False(t, p.i.Live)
	require.Equal(t, "k/7", p.i.Key)
}

// A job that fails every second for a day is told a few times, and each failure is counted.
func TestAFloodIsTold(t *testing.T) {
	p := play(t, domain.AlertRunFailed)
	for range 24 * 3600 {
		p.happen(1)
		p.pass(time.Second)
	}
	require.InDelta(t, 10, len(p.told), 2)
	p.pass(5 * time.Hour)
	require.EqualValues(t, 24*3600, p.i.ToldEvents, "the last message counts them all")
}

func TestFlappingIsNoFlood(t *testing.T) {
	p := play(t, domain.AlertRunFailed)
	for range 12 * 60 {
		p.happen(1)
		p.pass(30 * time.Second)
		p.recover()
		p.pass(30 * time.Second)
	}
	require.Less(t, len(p.told), 12, "in half a day")
	require.EqualValues(t, 12*60-1, p.i.Reopened)
	p.pass(5 * time.Hour)
	require.EqualValues(t, p.i.Events, p.i.ToldEvents, "none is untold")
	require.Equal(t, "resolved", p.told[len(p.told)-1])
}

// What is over before the first message is told all the same.
func TestWhatIsOverAtOnceIsTold(t *testing.T) {
	p := play(t, domain.AlertRunFailed)
	p.happen(1)
	p.recover()
	p.pass(time.Minute)
	require.Equal(t, []string{"resolved"}, p.told)
}

func TestAnOutageIsRepeated(t *testing.T) {
	p := play(t, domain.AlertNoExecutor)
	p.happen(1)
	p.pass(13 * time.Hour)
	require.Equal(t, []string{"open", "open", "open", "open"}, p.told)
	p.i.State = IncidentAcknowledged
	p.i.Schedule(p.now, &p.p, Wishes{})
	p.happen(1)
	p.pass(24 * time.Hour)
	require.Len(t, p.told, 4, "somebody is at it")
	p.recover()
	p.pass(time.Minute)
	require.Equal(t, "resolved", p.told[4])
}

func TestForgottenIncidents(t *testing.T) {
	p := play(t, domain.AlertRunFailed)
	p.happen(1)
	p.pass(8 * 24 * time.Hour)
	require.False(t, p.i.Live)
	require.Equal(t, IncidentResolved, p.i.State)
	require.Equal(t, []string{"open"}, p.told, "without a word")
}

func TestAbsorb(t *testing.T) {
	now := time.Unix(1e9, 0)
	part := &Incident{ID: 1, Key: "job/1", Live: true, Kind: domain.AlertRunLost, Job: 1}
	part.Add(&domain.AlertEvent{ID: 10, JobID: 1}, "one", now)
	whole := &Incident{ID: 2, Key: "executor/9", Live: true, Kind: domain.AlertRunLost}
	whole.Add(&domain.AlertEvent{ID: 11, JobID: 2}, "two", now.Add(time.Second))
	whole.Absorb(part, now.Add(time.Second))
	require.EqualValues(t, 2, whole.Events)
	require.Len(t, whole.Jobs, 2)
	require.EqualValues(t, 10, whole.FirstEvent)
	require.EqualValues(t, 11, whole.LastEvent)
	require.False(t, part.Live)
	require.Equal(t, domain.IncidentID(2), part.Parent)
	for n := range 3 * MaxIncidentJobs {
		whole.Add(&domain.AlertEvent{ID: int64(100 + n), JobID: domain.JobID(100 + n)}, "x", now)
	}
	require.Len(t, whole.Jobs, MaxIncidentJobs)
	names, more := whole.Names()
	require.Len(t, names, MaxIncidentNames)
	require.Equal(t, MaxIncidentJobs-MaxIncidentNames, more)
}
