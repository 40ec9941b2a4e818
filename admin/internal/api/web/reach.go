package web

import (
	"context"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// reachNouns are the nouns of paths whose objects belong to an executor.
var reachNouns = map[string]domain.ReachNoun{
	"executors": domain.ReachExecutor, "instances": domain.ReachInstance, "jobs": domain.ReachJob, "runs": domain.ReachRun,
	"backfills": domain.ReachBackfill, "job-proposals": domain.ReachProposal,
}

// namedNouns are those whose handlers keep to the names in the scope. So do handlers of paths
// with by-name.
var namedNouns = map[string]bool{"calls": true, "timers": true, "timer-cancellations": true}

// pathObject is the object that a path names by its id; without a noun there is none to look at.
type pathObject struct {
	noun  domain.ReachNoun
	param string
	what  string // in messages
}

// reachOf finds the object in the path of an operation that admits bound callers. It panics
// if it does not know how such an object belongs to an executor.
func reachOf(p Policy, op Operation) pathObject {
	segments := strings.Split(strings.TrimPrefix(op.Path, Base+"/"), "/")
	if !p.bound || !strings.Contains(op.Path, "{") || namedNouns[segments[0]] || segments[1] == "by-name" {
		return pathObject{}
	}
	noun, ok := reachNouns[segments[0]]
	if !ok || !strings.HasPrefix(segments[1], "{") {
		panic("api: " + op.Path + " keeps to executors, and nothing is known of the executor of " + segments[0])
	}
	return pathObject{noun, strings.Trim(segments[1], "{}"), strings.TrimSuffix(segments[0], "s")}
}

// inReach is CodeNotFound if the path names an object out of the caller's reach, or none.
func (s *Server) inReach(ctx context.Context, id auth.Identity, o pathObject, params gin.Params) error {
	if o.noun == "" || !id.Reach.Bounded() {
		return nil
	}
	text := params.ByName(o.param)
	of, err := domain.ParseID[domain.ExecutionID](text)
	if err != nil {
		return err
	}
	ok, err := s.options.InReach(ctx, domain.ReachQuery{Tenant: id.Tenant, Noun: o.noun, ID: int64(of), Within: id.Reach})
	if err != nil {
		return fmt.Errorf("look whether it is in reach: %w", err)
	}
	if !ok {
		return domain.Errorf(domain.CodeNotFound, "there is no %s %s", o.what, of)
	}
	return nil
}
