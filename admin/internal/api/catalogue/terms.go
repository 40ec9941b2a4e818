package catalogue

import (
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// MayCall keeps a key to the executors and handlers that it is for. The answer
// is the same as for what does not exist: names are nobody's business.
func MayCall(id auth.Identity, executor, handler string) error {
	if id.Scope.Allows(executor, handler) {
		return nil
	}
	return NoSuchTarget(executor, handler)
}

// NoSuchTarget is the answer about a handler that is not there, or not for the caller.
func NoSuchTarget(executor, handler string) error {
	return domain.Errorf(domain.CodeNotFound, "there is no executor %q whose handler %q you may call", executor, handler)
}

// maxStartWithin bounds how long a call may wait for an instance.
const maxStartWithin = 366 * 24 * time.Hour

// StartWithin is how long a run may wait for an instance.
func StartWithin(r *web.Reader, text string, otherwise time.Duration) time.Duration {
	said := len(r.Fields)
	within := r.Duration("body.startWithin", text, otherwise)
	if len(r.Fields) == said && (text != "" && within <= 0 || within > maxStartWithin) {
		r.Fail("body.startWithin", text, "must be more than 0s, and at most one year")
	}
	return within
}

// AttemptTimeout bounds one attempt; 0: nothing was said.
func AttemptTimeout(r *web.Reader, text string) time.Duration {
	said := len(r.Fields)
	timeout := r.Duration("body.timeout", text, 0)
	if len(r.Fields) == said && text != "" && (timeout < time.Millisecond || timeout > domain.MaxTimeout) {
		r.Fail("body.timeout", text, "must be from 1ms to 168h")
	}
	return timeout
}

// Note reads why a run is asked for.
func Note(r *web.Reader, text string) string {
	if domain.HasControl(strings.ReplaceAll(text, "\n", " ")) {
		r.Fail("body.note", nil, "must not contain control characters")
	}
	return strings.TrimSpace(text)
}

// Attempts is how often a run may be tried of which its caller asks for n and the
// job allows most: as many as the caller says, where the handler allows it, or
// leaves it to its callers.
func Attempts(n, most int, h *domain.Handler) int {
	if n > 0 && (n < most || h.Calls == nil || h.Calls.Retry.MaxAttempts == 0) {
		return n
	}
	return most
}
