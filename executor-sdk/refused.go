package executor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/executor-sdk/internal/session"
	"github.com/carillon-sched/carillon/proto"
)

// RefusedError says which declarations of the application the admin has not
// taken: the jobs do not exist, or are not as the code says. Executor.Health
// returns it while that is so and nothing else is wrong, and Run ends with it
// where Config.Strict is set.
//
// A job that was edited or deleted in the console and that the code declares
// UntilEdited is not refused: it belongs to the console then, as declared.
type RefusedError struct {
	// Declarations are ordered by job.
	Declarations []RefusedDeclaration
}

// RefusedDeclaration is something that is declared in code and was not taken.
type RefusedDeclaration struct {
	// Job is empty when it is not about a job: about the handler, or, if that is
	// empty too, about the registration with all its handlers.
	Job string
	// Handler that declares the job.
	Handler string
	// Code for machines, for example "conflict" or "validation_failed".
	Code string
	// Reason names what is wrong; of a job's settings as "job.schedule.jitter".
	Reason string
}

func (d RefusedDeclaration) String() string {
	if d.Job == "" && d.Handler != "" {
		return fmt.Sprintf("what handler %q declares (%s): %s", d.Handler, d.Code, d.Reason)
	}
	if d.Job == "" {
		return fmt.Sprintf("the registration (%s): %s", d.Code, d.Reason)
	}
	return fmt.Sprintf("job %q of handler %q (%s): %s", d.Job, d.Handler, d.Code, d.Reason)
}

func (e *RefusedError) Error() string {
	texts := make([]string, len(e.Declarations))
	for i, d := range e.Declarations {
		texts[i] = d.String()
	}
	return "the admin refuses " + strings.Join(texts, "; ")
}

// Codes of notices that are no refusals.
const (
	noticeUnavailable = "unavailable"       // not decided: the next registration asks again
	noticeEdited      = "edited_in_console" // the job is the console's, as the code declares
)

// noteNotices keeps what a registration's answer says about the declarations of
// this process. It returns false when Run has to end for it.
func (p *process) noteNotices(notices []*proto.Notice) (goOn bool) {
	decided := true
	refused := make([]RefusedDeclaration, 0, len(notices))
	for _, n := range notices {
		p.logger.Warn("the admin did not take a declaration",
			"code", n.GetCode(), "subject", n.GetSubject(), "reason", n.GetMessage())
		job := n.GetSubject()
		handler, ours := p.declared[job]
		if !ours && p.handlers[job] != nil { // what is declared beside the handler itself
			handler, job, ours = job, "", true
		}
		switch {
		case n.GetCode() == noticeUnavailable:
			decided = false
		case ours && n.GetCode() != noticeEdited:
			refused = append(refused, RefusedDeclaration{job, handler, n.GetCode(), n.GetMessage()})
		}
	}
	if !decided && len(refused) == 0 {
		return true // what was known stays
	}
	slices.SortFunc(refused, func(a, b RefusedDeclaration) int {
		return cmp.Or(strings.Compare(a.Job, b.Job), strings.Compare(a.Handler, b.Handler))
	})
	return p.noteRefused(refused)
}

// noteNo keeps that the admin refuses the registration as a whole.
func (p *process) noteNo(no *session.RefusedError) {
	if no.Code == "malformed" || no.Code == "too_large" {
		p.noteRefused([]RefusedDeclaration{{Code: no.Code, Reason: no.Message}})
	}
}

// noteRefused ends Run if the first answer is a no: what was taken once is not
// stopped by what somebody changes in the console later.
func (p *process) noteRefused(refused []RefusedDeclaration) (goOn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = refused
	if len(refused) == 0 {
		p.taken = true
	}
	if len(refused) == 0 || p.taken || !p.config.Strict {
		return true
	}
	if p.fatal == nil {
		p.fatal = &RefusedError{refused}
		close(p.giveUp)
	}
	return false
}

// refusal is what the admin has not taken, or nil.
func (p *process) refusal() *RefusedError {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) == 0 {
		return nil
	}
	return &RefusedError{slices.Clone(p.refused)}
}

// checkCallbacks finds callbacks and hooks that no handler of this process is:
// the processes of an executor are interchangeable, so no other one has them.
func checkCallbacks(order []*handler, known map[string]*handler) error {
	for _, h := range order {
		for _, d := range h.declared {
			for _, use := range [...]struct{ option, name string }{
				{"OnSuccess", ownCallback(d.GetOnSuccess(), d.GetSuccessTo())}, {"OnFailure", ownCallback(d.GetOnFailure(), d.GetFailureTo())},
				{"BeforeShards", d.GetSharding().GetBefore()}, {"AfterShards", d.GetSharding().GetAfter()},
			} {
				if use.name != "" && known[use.name] == nil {
					return fmt.Errorf("handler %q: job %q: %s(%q): no handler of this name is registered", h.name, d.GetName(), use.option, use.name)
				}
			}
		}
	}
	return nil
}

// ownCallback is the handler of this executor that is a callback; empty: it is elsewhere.
func ownCallback(own string, to *proto.Callback) string {
	if to != nil {
		return ""
	}
	return own
}
