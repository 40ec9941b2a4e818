package explain

import (
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// LimitCount is a limit on runs that are on instances at once, and how far it is
// used now.
type LimitCount struct {
	Tenants bool   // else the executor's
	Name    string // the executor's
	// Max is what it allows; Running and Waiting count runs.
	Max, Running, Waiting int
}

// underLimit is because for a run that waits: under which limit, how many run
// there now, and how many wait.
func (r Run) underLimit(reason domain.Reason, message string) Text {
	tenants, _, ok := domain.ReadLimitMessage(message)
	if reason != domain.ReasonWaitLimit || !ok {
		return because(reason)
	}
	for _, l := range r.Limits {
		if l.Tenants != tenants {
			continue
		}
		en, zh := fmt.Sprintf("the executor %q", l.Name), fmt.Sprintf("执行器“%s”", l.Name)
		if tenants {
			en, zh = "the tenant", "租户"
		}
		return Text{
			fmt.Sprintf("%s may have %s at once: %d %s running now, %d waiting for room", en, runs(int64(l.Max)), l.Running, isAre(l.Running), l.Waiting),
			fmt.Sprintf("%s同时最多运行 %d 个：目前运行 %d 个，等待 %d 个", zh, l.Max, l.Running, l.Waiting),
		}
	}
	return limitReason(reason, message)
}

// limitReason is because for a wait that is over: it says which limit it was,
// and what it allowed then.
func limitReason(reason domain.Reason, message string) Text {
	tenants, most, ok := domain.ReadLimitMessage(message)
	switch {
	case reason != domain.ReasonWaitLimit || !ok:
		return because(reason)
	case tenants:
		return Text{fmt.Sprintf("the tenant was at its limit of %s at once", runs(most)), fmt.Sprintf("租户的并发数已达上限（%d）", most)}
	}
	return Text{fmt.Sprintf("the executor was at its limit of %s at once", runs(most)), fmt.Sprintf("执行器的并发数已达上限（%d）", most)}
}

func runs(n int64) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
