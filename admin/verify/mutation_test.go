package verify_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/verify"
)

// mutants damage a healthy history in one place, in each way that a scheduler,
// or its tables, could be wrong. A mutation returns false when the place it was
// given does not suit it. Every one has to be caught, wherever it hits.
var mutants = map[string]struct {
	// rows: the damage shows only beside the execution rows.
	rows bool
	do   func(m *mutation) bool
}{
	"drop": {false, func(m *mutation) bool {
		if m.run.Attempt != m.row.Attempt && m.nearFault() || !m.certain() || !m.withRows && m.run.Attempt < m.row.Attempt {
			return false // a first attempt that a fault took, or that nobody counts
		}
		m.dropRun()
		return true
	}},
	"drop, and its row": {true, func(m *mutation) bool {
		if !m.certain() {
			return false
		}
		m.h.Runs = slices.DeleteFunc(m.h.Runs, func(r verify.Run) bool { return r.Key == m.run.Key })
		m.h.Rows = slices.DeleteFunc(m.h.Rows, func(r verify.Row) bool { return r.Key == m.run.Key })
		return true
	}},
	"duplicate": {false, func(m *mutation) bool {
		m.h.Runs = append(m.h.Runs, *m.run)
		return true
	}},
	"duplicate under the next fence": {false, func(m *mutation) bool {
		again := *m.run
		again.Fence, again.Start, again.End = m.row.Fence+1, again.Start+100, again.Start+200
		m.h.Runs = append(m.h.Runs, again)
		m.row.Fence++
		return true
	}},
	"duplicate with a row of its own": {true, func(m *mutation) bool {
		again, row := *m.run, *m.row
		again.Key, row.Key = "twin", "twin"
		if again.Attempt != row.Attempt || m.job() == "asked" && m.unnamed() {
			return false
		}
		m.h.Runs, m.h.Rows = append(m.h.Runs, again), append(m.h.Rows, row)
		return true
	}},
	"shift the start forward": {false, func(m *mutation) bool {
		if m.run.Attempt > 1 || m.unnamed() {
			return false
		}
		m.run.Start -= m.run.Start - m.offset() - m.run.FireAt + verify.Span(10*time.Millisecond)
		return m.run.Shard == 0 || m.withRows
	}},
	"shift the start back": {false, func(m *mutation) bool {
		if m.run.Attempt > 1 || m.nearFault() || m.unnamed() || m.run.Shard > 0 {
			return false
		}
		by := verify.Span(10 * time.Second)
		m.run.Start, m.run.End = m.run.Start+by, m.run.End+by
		return !m.nearFault()
	}},
	"shift the fire time": {false, func(m *mutation) bool {
		m.run.FireAt += verify.Span(time.Millisecond)
		return m.job() != "asked" && m.job() != "delayed" || m.withRows
	}},
	"shift the fire time, and its row's": {true, func(m *mutation) bool {
		m.run.FireAt += verify.Span(time.Millisecond)
		m.row.FireAt = m.run.FireAt
		return m.job() != "asked" && m.job() != "delayed"
	}},
	"swap the tenant": {false, func(m *mutation) bool {
		m.run.Tenant = map[string]string{"1": "2", "2": "1"}[m.run.Tenant]
		return true
	}},
	"swap the row's tenant": {true, func(m *mutation) bool {
		m.row.Tenant = map[string]string{"1": "2", "2": "1"}[m.row.Tenant]
		return true
	}},
	"lower the fence": {false, func(m *mutation) bool {
		m.run.Fence--
		return m.run.Fence == 0 || m.withRows && m.run.Attempt == m.row.Attempt
	}},
	"raise the row's fence": {true, func(m *mutation) bool {
		m.row.Fence++
		return true
	}},
	"erase the end": {true, func(m *mutation) bool {
		m.run.End, m.run.Failed = 0, false
		return m.run.Attempt == m.row.Attempt
	}},
	"lose the result": {true, func(m *mutation) bool {
		m.row.State = "lost"
		return m.run.Attempt == m.row.Attempt && !m.run.Failed && !m.atKill()
	}},
	"call it missed": {true, func(m *mutation) bool {
		m.row.State, m.row.Reason = "missed", "misfire"
		return true
	}},
	"call it failed": {true, func(m *mutation) bool {
		m.row.State, m.row.Reason = "failed", "handler_failed"
		return m.run.Attempt == m.row.Attempt && !m.run.Failed
	}},
	"never end": {true, func(m *mutation) bool {
		// The history goes on long enough for it to be stuck.
		m.h.Plan.To += verify.Span(10 * time.Minute)
		m.row.State = "running"
		return true
	}},
	"miss it without a reason": {true, func(m *mutation) bool {
		if m.nearFault() || !m.certain() || m.unnamed() {
			return false
		}
		m.row.State, m.row.Reason, m.row.Attempt = "missed", "misfire", 0
		m.row.PlannedAt = m.row.FireAt + verify.Span(6*time.Second)
		m.dropRuns()
		return true
	}},
	"miss what was on time": {true, func(m *mutation) bool {
		if !m.certain() || m.unnamed() || m.row.PlannedAt > m.row.FireAt {
			return false
		}
		m.row.State, m.row.Reason = "missed", "misfire"
		m.dropRuns()
		return true
	}},
	"discard it without an overlap": {true, func(m *mutation) bool {
		if m.job() == "discards" || !m.certain() || m.unnamed() {
			return false
		}
		m.row.State, m.row.Reason, m.row.FinishedAt = "discarded", "overlap", m.row.FireAt
		m.dropRuns()
		return true
	}},
	"pause it without a call": {true, func(m *mutation) bool {
		if m.nearFault() || !m.certain() || m.unnamed() || m.job() == "paused" || m.job() == "deleted" || m.job() == "unanswered" {
			return false
		}
		m.row.State, m.row.Reason = "missed", "paused"
		m.dropRuns()
		return true
	}},
	"exclude it without a calendar": {true, func(m *mutation) bool {
		if !m.certain() || m.unnamed() || m.job() == "delayed" {
			return false
		}
		m.row.State, m.row.Reason = "excluded", "calendar"
		m.dropRuns()
		return true
	}},
	"run it on a holiday": {true, func(m *mutation) bool {
		fire := at(blackoutFrom) + verify.Span(2*time.Second)*(m.run.Start%10)
		i := slices.IndexFunc(m.h.Rows, func(r verify.Row) bool { return r.Job == "holidays" && r.FireAt == fire })
		m.h.Rows[i].State, m.h.Rows[i].Reason, m.h.Rows[i].Fence, m.h.Rows[i].Attempt = "succeeded", "", 1, 1
		m.h.Runs = append(m.h.Runs, verify.Run{
			Job: "holidays", Key: m.h.Rows[i].Key, Fence: 1, Attempt: 1, Boot: "e2-boot1", Tenant: m.h.Rows[i].Tenant, FireAt: fire, Start: fire + 1000, End: fire + 2000,
		})
		return true
	}},
	"miss what a calendar excludes": {true, func(m *mutation) bool {
		fire := at(blackoutFrom) + verify.Span(2*time.Second)*(m.run.Start%10)
		i := slices.IndexFunc(m.h.Rows, func(r verify.Row) bool { return r.Job == "holidays" && r.FireAt == fire })
		m.h.Rows[i].Reason = "misfire"
		return true
	}},
	"overlap": {true, func(m *mutation) bool {
		if m.job() != "serial" || m.nearFault() {
			return false
		}
		for i := range m.h.Runs {
			next := &m.h.Runs[i]
			if next.Job == "serial" && next.FireAt == m.run.FireAt+verify.Span(4*time.Second) {
				m.run.End = next.Start - offsetOf(next) + m.offset() + verify.Span(100*time.Millisecond)
				m.row.FinishedAt = m.run.End
				return m.run.End > m.run.Start
			}
		}
		return false
	}},
	"start after the delete": {true, func(m *mutation) bool {
		if m.job() != "deleted" || m.run.Attempt > 1 {
			return false
		}
		to := at(changed + 1400*time.Millisecond)
		m.run.Start, m.run.End = to+m.offset(), to+m.offset()+1000
		return true
	}},
	"start after the pause": {true, func(m *mutation) bool {
		if m.job() != "paused" {
			return false
		}
		to := at(changed + 1400*time.Millisecond)
		m.run.Start, m.run.End = to+m.offset(), to+m.offset()+1000
		return true
	}},
}

// mutation is one place in one history.
type mutation struct {
	h        *verify.History
	run      *verify.Run
	row      *verify.Row
	withRows bool
}

func (m *mutation) job() string { return m.run.Job }

func (m *mutation) dropRun() {
	i := slices.IndexFunc(m.h.Runs, func(r verify.Run) bool { return r == *m.run })
	m.h.Runs = slices.Delete(m.h.Runs, i, i+1)
}

func (m *mutation) dropRuns() {
	key := m.run.Key
	m.h.Runs = slices.DeleteFunc(m.h.Runs, func(r verify.Run) bool { return r.Key == key })
}

// offsetOf is what the clock of a run's node is ahead.
func offsetOf(r *verify.Run) verify.Time {
	if r.Node == "e2" {
		return verify.Span(3 * time.Second)
	}
	return 0
}

func (m *mutation) offset() verify.Time { return offsetOf(m.run) }

// nearFault: a fault could explain it.
func (m *mutation) nearFault() bool {
	from, to := m.run.FireAt, max(m.run.Start-m.offset(), m.row.FinishedAt, m.row.PlannedAt)
	return slices.ContainsFunc(m.h.Faults, func(f verify.Fault) bool {
		return f.Start <= to+verify.Span(10*time.Second) && f.End+m.h.Plan.Settle >= from
	})
}

// atKill: the result may have died with its process.
func (m *mutation) atKill() bool {
	end := m.run.End - m.offset()
	return m.run.Node == "e1" && end > at(killed-2*time.Second) && end < at(killed+2*time.Second)
}

// certain: the run had to happen.
func (m *mutation) certain() bool {
	return m.job() != "unanswered" && !m.unnamed() ||
		m.job() == "unanswered" && m.run.FireAt < at(changed)
}

// unnamed: nobody knows whether the call that asked for it arrived.
func (m *mutation) unnamed() bool {
	return m.job() == "asked" && !slices.ContainsFunc(m.h.Calls, func(c verify.Call) bool { return c.Key == m.run.Key })
}

// mutantsEach is how often each mutation is tried with and without rows;
// more of them: go test ./admin/verify -run Mutant -mutants 300.
var mutantsEach = flag.Int("mutants", 4, "places at which each mutation is tried")

func TestEveryMutantIsCaught(t *testing.T) {
	var worlds []*verify.History
	for seed := range uint64(4) {
		worlds = append(worlds, newWorld(seed))
	}
	for name, mutant := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pick := rand.New(rand.NewPCG(7, uint64(len(name))))
			for _, withRows := range []bool{true, false} {
				if mutant.rows && !withRows {
					continue
				}
				for caught, tried := 0, 0; caught < *mutantsEach; tried++ {
					require.Less(t, tried, 200**mutantsEach, "the mutation hardly ever applies")
					m := place(worlds[tried%len(worlds)], pick, withRows)
					was := *m.run
					if !mutant.do(m) {
						continue
					}
					r := check(t, m.h)
					require.Equal(t, 1, r.ExitCode(), "not caught (rows: %v): %+v\nreport: %+v", withRows, was, r)
					if caught == 0 {
						sameFromFiles(t, m.h, r)
					}
					caught++
				}
			}
		})
	}
}

// place prepares one run, of a row that ended well, of a copy for a mutation.
func place(healthy *verify.History, pick *rand.Rand, withRows bool) *mutation {
	for {
		i := pick.IntN(len(healthy.Runs))
		k := slices.IndexFunc(healthy.Rows, func(r verify.Row) bool { return r.Key == healthy.Runs[i].Key })
		if healthy.Rows[k].State != "succeeded" {
			continue
		}
		m := &mutation{h: clone(healthy), withRows: withRows}
		m.run, m.row = &m.h.Runs[i], &m.h.Rows[k]
		if !withRows {
			m.h.Rows = nil
		}
		return m
	}
}
