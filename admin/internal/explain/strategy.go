package explain

import (
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// passed says why an instance that serves the handler did not get a run that
// was sent: what the strategy says of it, and what it must have been when it
// would have come first. How full it was then, no row tells.
func (r Run) passed(i *domain.Instance) Text {
	if t, ok := r.unpreferred(i); ok {
		return t
	}
	switch s := r.Spec.Routing; s {
	case domain.RouteFirst, domain.RouteFailover, domain.RouteBusyOver, domain.RouteLast:
		return r.byOrder(i, s)
	case domain.RouteConsistentHash:
		key, keyZh := r.key()
		return orBusy(Text{"It does not have " + key, keyZh + "不属于它"})
	case domain.RouteLeastFrequentlyUsed:
		return orBusy(Text{fmt.Sprintf("It had got more of the job's last %d runs than another one", domain.RoutingWindow),
			fmt.Sprintf("在任务最近 %d 次运行中，它被使用得比其他实例多", domain.RoutingWindow)})
	case domain.RouteLeastRecentlyUsed:
		return orBusy(Text{"The job had used it more recently than another one", "任务最近使用过它，其他实例更久未被使用"})
	case domain.RouteLeastLoaded:
		return orBusy(Text{"Another one was less loaded, by its slots and its CPU", "其他实例的负载更低（槽位与 CPU）"})
	case domain.RouteRandom:
		return orBusy(Text{"The lot fell on another one", "随机选中了其他实例"})
	default:
		return orBusy(Text{"It was another one's turn", "轮到了其他实例"})
	}
}

func orBusy(t Text) Text {
	return Text{t.En + "; or it was full, leaving, not answering or could not write its journal at that moment.", t.Zh + "；或它当时已满、正在退出、没有应答或无法写入 journal。"}
}

// byOrder compares the places in the order of registration.
func (r Run) byOrder(i *domain.Instance, s domain.Routing) Text {
	ahead := i.ID < r.Execution.Instance
	if s == domain.RouteLast {
		ahead = i.ID > r.Execution.Instance
	}
	if r.Execution.Instance != 0 && ahead {
		return Text{fmt.Sprintf("For the routing strategy %s it comes before the chosen one: it was full, leaving, not answering or could not write its journal at that moment, or somebody asked for the chosen one.", s),
			fmt.Sprintf("按路由策略 %s，它排在被选中的实例之前：它当时已满、正在退出、没有应答或无法写入 journal，或有人指定了被选中的实例。", s)}
	}
	return Text{fmt.Sprintf("For the routing strategy %s another one comes before it.", s), fmt.Sprintf("按路由策略 %s，有其他实例排在它之前。", s)}
}

// key names the key of a run under consistent hash.
func (r Run) key() (en, zh string) {
	input := r.Execution.Input
	if input == nil {
		input = r.Spec.Input
	}
	if v, ok := domain.PointerValue(input, r.Spec.RoutingKey); ok && r.Spec.RoutingKey != "" {
		if runes := []rune(v); len(runes) > 64 {
			v = string(runes[:63]) + "…"
		}
		return fmt.Sprintf("the run's key %q (%s of its input)", v, r.Spec.RoutingKey), fmt.Sprintf("本次运行的键“%s”（输入中的 %s）", v, r.Spec.RoutingKey)
	}
	return "the job, which is the run's key", "以任务为键，该任务"
}

// unpreferred tells of labels that were preferred, if the chosen one has them.
func (r Run) unpreferred(i *domain.Instance) (Text, bool) {
	lacks := r.Spec.Prefer.Unmet(i.Labels)
	if lacks == "" {
		return Text{}, false
	}
	for n := range r.Instances {
		if o := &r.Instances[n]; o.ID == r.Execution.Instance && r.Spec.Prefer.Matches(o.Labels) {
			return Text{fmt.Sprintf("It does not meet the preferred labels (%s), and the chosen one does.", lacks),
				fmt.Sprintf("它不满足优先标签（%s），而被选中的实例满足。", lacks)}, true
		}
	}
	return Text{}, false
}

// waitsFor reports whether a run that waits would take the instance if it had
// room: a strategy that takes one instance only waits for that one.
func (r Run) waitsFor(i *domain.Instance) bool {
	e := &r.Execution
	if !r.Spec.Routing.Pinned() || r.Spec.Routing == domain.RouteFailover && e.Tried() {
		return true
	}
	for n := range r.Instances {
		o := &r.Instances[n]
		if o.ID == i.ID || r.standing(o, r.Now, true) != "" {
			continue
		}
		mine, others := r.Spec.Prefer.Matches(i.Labels), r.Spec.Prefer.Matches(o.Labels)
		ahead := o.ID < i.ID
		if r.Spec.Routing == domain.RouteLast {
			ahead = o.ID > i.ID
		}
		if others && !mine || others == mine && ahead {
			return false
		}
	}
	return true
}
