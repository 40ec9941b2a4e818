package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// Report is all that one run of the bench found out.
type Report struct {
	StartedAt time.Time `json:"startedAt"`
	Took      Seconds   `json:"tookSeconds"`
	Quick     bool      `json:"quick"`
	Machine   Machine   `json:"machine"`
	Results   []Result  `json:"results"`
}

// Stalls are the machine's own, as internal/testenv/lab notices them.
type Stalls = lab.Stalls

// Machine says where the figures were taken.
type Machine struct {
	OS       string  `json:"os"`
	Kernel   string  `json:"kernel"`
	CPU      string  `json:"cpu"`
	Cores    int     `json:"cores"`
	Memory   int64   `json:"memoryBytes"`
	Go       string  `json:"go"`
	Revision string  `json:"revision"`
	Version  string  `json:"version"`
	MySQL    string  `json:"mysql,omitempty"` // version and the settings that matter
	SQLite   string  `json:"sqlite,omitempty"`
	Load     float64 `json:"loadBefore"` // the kernel's one-minute average when the run began
}

// Seconds is a duration that JSON shows as seconds.
type Seconds float64

func seconds(d time.Duration) Seconds { return Seconds(d.Seconds()) }

// Result is one measured scenario.
type Result struct {
	Scenario string `json:"scenario"`
	Variant  string `json:"variant"`
	Database string `json:"database,omitempty"` // mysql or sqlite
	Admins   int    `json:"admins,omitempty"`
	// Jobs are all enabled ones, Rows the finished runs in the table before it
	// began.
	Jobs   int     `json:"jobs,omitempty"`
	Rows   int     `json:"rows,omitempty"`
	Window Seconds `json:"windowSeconds,omitempty"`
	// Took is the whole part, with starting, loading and judging.
	Took Seconds `json:"tookSeconds,omitempty"`

	Throughput *Throughput `json:"throughput,omitempty"`
	Fires      *Fires      `json:"fires,omitempty"`
	Lateness   *Spread     `json:"latenessMs,omitempty"`
	// FloorLateness is what the database alone makes of it.
	FloorLateness *Spread `json:"floorLatenessMs,omitempty"`
	// RoundTrip is from the sending of a command to its result, without a
	// database; FloorRoundTrip is that of yamux alone.
	RoundTrip      *Spread `json:"roundTripMicros,omitempty"`
	FloorRoundTrip *Spread `json:"floorRoundTripMicros,omitempty"`
	// Elapsed is how long each of what the variant names took, in milliseconds.
	Elapsed   *Spread   `json:"elapsedMs,omitempty"`
	Processes []Process `json:"processes,omitempty"`
	// Stalls are the machine's own while this was measured.
	Stalls *Stalls `json:"stalls,omitempty"`
	// Overload: Throughput's floor is then what can be done, Lateness that of
	// fresh runs once they are on time again, Elapsed that of pauses meanwhile.
	Overload *Overload `json:"overload,omitempty"`
	// Shape is what shapes found beside Fires.
	Shape *Shape   `json:"shape,omitempty"`
	Notes []string `json:"notes,omitempty"`
	// Failed says why there are no figures, or why they are not to be trusted.
	Failed string `json:"failed,omitempty"`
}

// Throughput is a sustained rate.
type Throughput struct {
	// PerSecond counts results committed in the window.
	PerSecond float64 `json:"perSecond"`
	// Offered is how many fires per second were due.
	Offered float64 `json:"offeredPerSecond"`
	// Floor is the rate of the same statements alone.
	Floor        float64 `json:"floorPerSecond"`
	FloorPercent float64 `json:"percentOfFloor"`
	FloorStages  []Stage `json:"floorStages,omitempty"`
}

// Stage is one kind of transaction of the floor.
type Stage struct {
	Name         string  `json:"name"`
	Transactions int     `json:"transactions"`
	Statements   int     `json:"statements"`
	Busy         Seconds `json:"busySeconds"` // of all its connections together
}

// Fires compares what was due with what happened.
type Fires struct {
	Expected int `json:"expected"`
	Rows     int `json:"rows"`
	Started  int `json:"started"`
	Missed   int `json:"missed"`  // no start
	Doubled  int `json:"doubled"` // starts beyond the first
	Early    int `json:"early"`
	Foreign  int `json:"notExpected"` // starts without a row
	Unproven int `json:"unproven"`    // rows that say succeeded and have no start
}

// Spread is a distribution, in milliseconds where nothing else is said.
type Spread struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

func spreadOf(ms []float64) *Spread {
	if len(ms) == 0 {
		return nil
	}
	slices.Sort(ms)
	at := func(q float64) float64 { return ms[min(len(ms)-1, int(q*float64(len(ms))))] }
	return &Spread{Count: len(ms), P50: at(0.5), P99: at(0.99), Max: ms[len(ms)-1]}
}

// Process is what one process used in the window.
type Process struct {
	Name string  `json:"name"`
	CPU  Seconds `json:"cpuSeconds"`
	Core float64 `json:"percentOfCore"`
	RSS  int64   `json:"maxRSSBytes"`
	// Alone is what it used before what is measured had begun; 0 where that is
	// not compared.
	Alone int64 `json:"aloneRSSBytes,omitempty"`
	// PerFire is CPU microseconds per run that ended in the window; 0 where
	// nothing is counted.
	PerFire float64 `json:"cpuMicrosecondsPerFire,omitempty"`
}

// broken joins what contradicts the promises: then a fast figure is worth
// nothing.
func (f *Fires) broken() error {
	var bad []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	check(f.Expected > 0, "nothing was expected")
	check(f.Rows == f.Expected, "%d rows for %d fire times", f.Rows, f.Expected)
	check(f.Missed == 0, "%d missed", f.Missed)
	check(f.Doubled == 0, "%d doubled", f.Doubled)
	check(f.Early == 0, "%d early", f.Early)
	check(f.Foreign == 0, "%d starts without a row", f.Foreign)
	check(f.Unproven == 0, "%d rows say succeeded and nobody saw them start", f.Unproven)
	return errors.Join(bad...)
}

// Err joins what went wrong in all results.
func (r *Report) Err() error {
	var bad []error
	for _, one := range r.Results {
		if one.Failed != "" {
			bad = append(bad, fmt.Errorf("%s, %s: %s", one.Scenario, one.Variant, one.Failed))
		}
	}
	return errors.Join(bad...)
}
