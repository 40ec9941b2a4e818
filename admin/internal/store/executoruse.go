package store

import (
	"fmt"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// ExecutorUse is what an executor has. Jobs are the plain ones; HandlerJobs are the jobs of other
// kinds, which hold the calls, callbacks and timers of its handlers; Timers are pending. Instances
// have not gone. Callbacks are jobs whose callbacks are handlers of the executor.
type ExecutorUse struct{ Jobs, HandlerJobs, Timers, Instances, Callbacks int64 }

// InTheWay refuses the deletion of an executor that is used, with the way to take the rest along.
// endInstances: its instances are no reason. nil: it can be deleted.
func (u ExecutorUse) InTheWay(name string, endInstances bool) error {
	if u.Jobs+u.HandlerJobs+u.Callbacks <= 0 && (u.Instances == 0 || endInstances) {
		return nil
	}
	e := domain.Errorf(domain.CodeInUse, "")
	var has []string
	note := func(location string, n int64, noun, nouns, advice string) {
		if n <= 0 {
			return
		}
		if n != 1 {
			noun = nouns
		}
		text := fmt.Sprintf("%d %s", n, noun)
		if location != "path.id" {
			has = append(has, text)
		}
		e.Fields = append(e.Fields, domain.FieldError{Location: location, Message: text, Hint: advice, Value: n, Position: -1})
	}
	note("query.jobs", u.Jobs, "job", "jobs", "jobs=delete deletes them")
	note("query.jobs", u.HandlerJobs, "job with calls, callbacks and timers of a handler", "jobs with calls, callbacks and timers of handlers", "jobs=delete deletes what they hold")
	note("query.jobs", u.Timers, "pending timer", "pending timers", "jobs=delete cancels them")
	note("path.id", u.Callbacks, "job of another executor with callbacks here", "jobs of other executors with callbacks here", "change these jobs first")
	note("query.instances", u.Instances, "connected instance", "connected instances", "instances=end ends their sessions, and what they run is lost")
	e.Message = fmt.Sprintf("the executor %q has %s; delete or stop them first, or take them along", name, strings.Join(has, ", "))
	if u.Callbacks > 0 {
		e.Message = fmt.Sprintf("jobs of other executors have callbacks to the executor %q (%d); change these jobs first", name, u.Callbacks)
	}
	return e
}
