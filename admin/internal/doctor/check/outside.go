package check

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
)

func (e *examination) lookAtHotStore(ctx context.Context) doctor.Result {
	if e.HotStore == "" {
		return doctor.Skip("there is none (--hot-store)")
	}
	if err := hotset.Ping(ctx, e.HotStore); err != nil {
		return doctor.Warn("hot_store_unreachable", "Look at the Redis and at --hot-store; until then the database is searched for timers.", "%v", Plainly(ctx, err))
	}
	return doctor.Passed("the Redis answers")
}
