//go:build proof

package outbox

import (
	"testing"

	_ "github.com/lib/pq"

	"github.com/carillon-sched/carillon/executor-sdk/timers"
	"github.com/carillon-sched/carillon/internal/testenv"
)

func init() {
	kinds[timers.PostgreSQL] = func(t *testing.T) database {
		return database{timers.PostgreSQL, "postgres", testenv.PostgreSQL(t)}
	}
}
