package verify_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

// world writes the history of a scheduler that keeps all promises, through an
// outage of all admins and the death of an executor. It knows nothing of the
// checker: fire times are multiples, and what happened is made up from them.
type world struct {
	h    verify.History
	rand *rand.Rand
	key  int
}

// The world's calendar, from begin on.
const (
	worldEnd   = 300 * time.Second
	outageFrom = 100 * time.Second
	outageTo   = 140 * time.Second
	killed     = 200 * time.Second
	changed    = 250 * time.Second
	// Nothing of the job with a calendar runs in between.
	blackoutFrom, blackoutTo = 60 * time.Second, 80 * time.Second
	maxLateness              = 2 * time.Second
)

// newWorld makes a history of about 1,500 runs.
func newWorld(seed uint64) *verify.History {
	w := &world{rand: rand.New(rand.NewPCG(seed, 1))}
	w.h.Plan = &verify.Plan{
		From: at(0), To: at(worldEnd), MinRuns: 1000, MinFaults: 2, MinNodes: 3, MaxLate: verify.Span(maxLateness), Settle: verify.Span(5 * time.Second),
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		w.h.Nodes = append(w.h.Nodes, verify.Node{Node: n, Role: "admin", At: at(0)})
	}
	w.h.Nodes = append(w.h.Nodes, verify.Node{Node: "e2", Role: "executor", At: at(0), Offset: verify.Span(3 * time.Second), Error: 200})
	w.h.Faults = []verify.Fault{
		{ID: "F04", Kind: "sigkill", Target: "n1,n2,n3", Start: at(outageFrom), End: at(outageTo)},
		{ID: "F07", Kind: verify.FaultKill, Target: "e1", Start: at(killed), End: at(killed + time.Second)},
	}
	w.plain("parallel", verify.Spec{Blocking: "parallel"}, time.Second)
	w.plain("cron", verify.Spec{Kind: "cron", Expr: "*/2 * * * * *", Blocking: "parallel"}, 2*time.Second)
	w.plain("once now", verify.Spec{Misfire: "once_now"}, 3*time.Second)
	w.plain("broadcast", verify.Spec{Shards: 3}, 7*time.Second)
	w.plain("failing", verify.Spec{MaxAttempts: 2}, 5*time.Second)
	w.plain("idempotent", verify.Spec{MaxAttempts: 3, Idempotent: true, Blocking: "parallel"}, time.Second)
	w.plain("paused", verify.Spec{}, time.Second)
	w.plain("edited", verify.Spec{}, 2*time.Second)
	w.plain("deleted", verify.Spec{}, time.Second)
	w.plain("unanswered", verify.Spec{}, time.Second)
	w.plain("holidays", verify.Spec{Blocking: "parallel", Calendars: []verify.Calendar{{
		Blackouts: []verify.Blackout{{From: at(blackoutFrom), To: at(blackoutTo)}},
	}}}, 2*time.Second)
	w.busy("serial", verify.Spec{}, 4*time.Second)
	w.busy("discards", verify.Spec{Blocking: "discard_later"}, 4*time.Second)
	w.delayed("delayed", 3*time.Second)
	w.asked("asked")
	w.rand.Shuffle(len(w.h.Runs), func(i, k int) { w.h.Runs[i], w.h.Runs[k] = w.h.Runs[k], w.h.Runs[i] })
	w.rand.Shuffle(len(w.h.Rows), func(i, k int) { w.h.Rows[i], w.h.Rows[k] = w.h.Rows[k], w.h.Rows[i] })
	return &w.h
}

// tenantOf puts some jobs into another tenant.
func tenantOf(job string) string {
	if len(job)%2 == 0 {
		return "1"
	}
	return "2"
}

// create writes the job's call; its schedule is every, on whole seconds.
func (w *world) create(job string, spec verify.Spec, every time.Duration) {
	if spec.Kind == "" {
		spec.Kind, spec.Every = "fixed_rate", verify.Span(every)
	}
	w.call(verify.OpCreate, job, -5*time.Second).Spec = &spec
}

func (w *world) call(op verify.Op, job string, when time.Duration) *verify.Call {
	w.h.Calls = append(w.h.Calls, verify.Call{
		Op: op, Tenant: tenantOf(job), Job: job, Invoke: at(when - 4*time.Millisecond), Ack: at(when + 6*time.Millisecond),
	})
	return &w.h.Calls[len(w.h.Calls)-1]
}

// lateness is usually some milliseconds.
func (w *world) lateness() time.Duration {
	return time.Duration(w.rand.IntN(40_000)) * time.Microsecond
}

// row adds an execution that has not run.
func (w *world) row(job string, fire time.Duration, state, reason string) *verify.Row {
	w.key++
	w.h.Rows = append(w.h.Rows, verify.Row{
		Key: fmt.Sprint(w.key), Tenant: tenantOf(job), Job: job, Revision: 1, Cause: "schedule", FireAt: at(fire),
		State: state, Reason: reason, PlannedAt: at(fire - 2*time.Second), FinishedAt: at(fire + 2*time.Second), Node: "n1",
	})
	return &w.h.Rows[len(w.h.Rows)-1]
}

// ran adds an execution with one good start, and returns both.
func (w *world) ran(job string, fire, start, takes time.Duration) (*verify.Row, *verify.Run) {
	row := w.row(job, fire, "succeeded", "")
	row.Fence, row.Attempt = 1, 1
	row.OfferedAt, row.StartedAt, row.FinishedAt = at(start), at(start), at(start+takes+5*time.Millisecond)
	return row, w.start(row, start, takes)
}

// start adds a witness of a row's current attempt. The clock of e2 is 3 s ahead.
func (w *world) start(row *verify.Row, start, takes time.Duration) *verify.Run {
	node, offset := "e1", time.Duration(0)
	if row.Job == "serial" || row.Job == "discards" || w.rand.IntN(2) == 0 {
		node, offset = "e2", 3*time.Second
	}
	boot := node + "-boot1"
	if node == "e1" && start > killed {
		boot = "e1-boot2"
	}
	w.h.Runs = append(w.h.Runs, verify.Run{
		Job: row.Job, Key: row.Key, Fence: row.Fence, Boot: boot, Tenant: row.Tenant, Attempt: row.Attempt,
		FireAt: row.FireAt, Node: node, Start: at(start + offset), End: at(start + takes + offset),
	})
	return &w.h.Runs[len(w.h.Runs)-1]
}

func during(t, from, to time.Duration) bool { return t >= from && t < to }

// plain is a job whose runs are short, with what its name says.
func (w *world) plain(job string, spec verify.Spec, every time.Duration) {
	w.create(job, spec, every)
	w.changes(job)
	free := time.Duration(0)
	last := (outageTo - time.Millisecond).Truncate(every) // the newest fire time of the outage
	for fire := time.Duration(0); fire <= worldEnd; fire += every {
		switch {
		case !fires(job, fire):
		case job == "holidays" && during(fire, blackoutFrom, blackoutTo):
			w.row(job, fire, "excluded", "calendar")
		case during(fire, outageFrom, outageTo-5*time.Second):
			w.passed(job, fire, fire == last, spec.Misfire == "once_now")
		case spec.Misfire == "once_now" && during(fire, outageFrom, last):
			w.passed(job, fire, false, true)
		default:
			start := fire + w.lateness()
			if during(fire, outageFrom, outageTo) {
				start = outageTo + w.lateness()
			}
			if spec.Blocking != "parallel" {
				start = max(start, free+w.lateness())
			}
			free = start + 400*time.Millisecond
			w.plainRun(job, fire, start, spec.Shards)
		}
	}
}

// changes writes the calls of the jobs that change; see fires.
func (w *world) changes(job string) {
	switch job {
	case "paused":
		w.call(verify.OpPause, job, changed+300*time.Millisecond)
		w.call(verify.OpResume, job, changed+10*time.Second+300*time.Millisecond)
	case "edited":
		c := w.call(verify.OpEdit, job, changed+300*time.Millisecond)
		c.Spec, c.Revision = &verify.Spec{Kind: "fixed_rate", Every: verify.Span(4 * time.Second)}, 2
	case "deleted":
		w.call(verify.OpDelete, job, changed+300*time.Millisecond)
	case "unanswered":
		w.call(verify.OpPause, job, changed+300*time.Millisecond).Ack = 0
	}
}

// fires tells whether the job fires after its changes.
func fires(job string, fire time.Duration) bool {
	switch {
	case fire <= changed:
		return true
	case job == "paused":
		return fire > changed+10*time.Second
	case job == "edited":
		return fire%(4*time.Second) == 0
	case job == "deleted":
		return false
	case job == "unanswered": // the pause came, some time later
		return fire < changed+7*time.Second
	}
	return true
}

// passed adds a fire time of the outage.
func (w *world) passed(job string, fire time.Duration, newest, onceNow bool) {
	reason := "misfire"
	if onceNow && !newest {
		reason = "coalesced"
	}
	row := w.row(job, fire, "missed", reason)
	row.PlannedAt = at(outageTo + 100*time.Millisecond)
	row.FinishedAt = row.PlannedAt
}

// plainRun adds the starts of one fire time.
func (w *world) plainRun(job string, fire, start time.Duration, shards int) {
	row, run := w.ran(job, fire, start, 50*time.Millisecond)
	switch {
	case job == "failing" && w.rand.IntN(3) == 0:
		run.Failed = true
		row.Fence, row.Attempt = 3, 2 // the second offer was refused
		w.start(row, start+200*time.Millisecond, 30*time.Millisecond)
	case job == "idempotent" && during(fire, killed-2*time.Second, killed) && run.Node == "e1":
		run.End = 0
		row.Fence, row.Attempt = 2, 2
		w.start(row, killed+18*time.Second, 30*time.Millisecond)
	}
	for shard := 1; shard < shards; shard++ {
		w.start(row, start+w.lateness(), 50*time.Millisecond).Shard = shard
	}
}

// busy is a job whose runs often take longer than its interval.
func (w *world) busy(job string, spec verify.Spec, every time.Duration) {
	w.create(job, spec, every)
	began, free := time.Duration(0), time.Duration(0)
	for fire := time.Duration(0); fire <= worldEnd; fire += every {
		planned := fire
		if during(fire, outageFrom, outageTo) {
			planned = outageTo
		}
		start := max(planned, free) + w.lateness()
		switch {
		case during(fire, outageFrom, outageTo-5*time.Second):
			w.passed(job, fire, false, false)
			continue
		case spec.Blocking == "discard_later" && free > planned:
			row := w.row(job, fire, "discarded", "overlap")
			row.FinishedAt = at(max(planned, began) + 3*time.Millisecond)
			continue
		}
		takes := time.Duration(w.rand.IntN(7000)) * time.Millisecond
		w.ran(job, fire, start, takes)
		began, free = start, start+takes+10*time.Millisecond
	}
}

// delayed is a job with a fixed delay.
func (w *world) delayed(job string, delay time.Duration) {
	w.create(job, verify.Spec{Kind: "fixed_delay", Every: verify.Span(delay)}, 0)
	for fire := time.Duration(0); fire <= worldEnd; {
		start := fire + w.lateness()
		if during(start, outageFrom, outageTo) {
			start = outageTo + w.lateness()
		}
		row, _ := w.ran(job, fire, start, 200*time.Millisecond)
		// The next fire time is a whole millisecond after the end.
		fire = time.Duration(row.FinishedAt-at(0)) * time.Microsecond
		fire = (fire + time.Millisecond - 1).Truncate(time.Millisecond) + delay
	}
}

// asked is a job that runs when asked, sometimes without an answer.
func (w *world) asked(job string) {
	w.create(job, verify.Spec{Kind: "none"}, 0)
	for i := range 40 {
		when := time.Duration(i)*5*time.Second + 500*time.Millisecond
		call := w.call(verify.OpTrigger, job, when)
		if i%10 == 9 {
			call.Ack = 0
			if i%20 == 9 {
				continue // it never arrived
			}
		}
		row, _ := w.ran(job, when, when+w.lateness(), 20*time.Millisecond)
		row.Cause, row.Request = "api", fmt.Sprint("r", i)
		if call.Ack != 0 {
			call.Key = row.Key
		}
	}
}

// clone copies a history deeply enough to be mutated.
func clone(h *verify.History) *verify.History {
	c := *h
	c.Calls, c.Runs, c.Rows = slices.Clone(h.Calls), slices.Clone(h.Runs), slices.Clone(h.Rows)
	c.Faults, c.Nodes = slices.Clone(h.Faults), slices.Clone(h.Nodes)
	plan := *h.Plan
	c.Plan = &plan
	return &c
}
