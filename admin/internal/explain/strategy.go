package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// rival is an instance that could have run a run, beside the one that was chosen.
type rival struct {
	run    Run
	one    *domain.Instance
	chosen *domain.Instance // nil: it is not on the list any more
}

func (r Run) rival(i *domain.Instance) rival {
	v := rival{run: r, one: i}
	if n := slices.IndexFunc(r.Instances, func(o domain.Instance) bool { return o.ID == r.Execution.Instance }); n >= 0 {
		v.chosen = &r.Instances[n]
	}
	return v
}

// passed says why an instance that could have run it did not get a run that was
// sent: it had no room, or the strategy took another one. Who had no room stands
// in the run's row (domain.Passed); all else follows from other rows.
func (v rival) passed(possible []domain.InstanceID) (Verdict, Text) {
	e := &v.run.Execution
	if e.Instance == 0 || e.OfferedAt.IsZero() {
		return v.neverSent()
	}
	full, sure := e.Passed.Full(v.one.ID, possible)
	ahead, known := v.ahead()
	running := v.run.Choice.Running[v.one.ID]
	switch {
	case e.Passed.Known() && full && v.one.Refusing && running < v.one.Slots:
		return Refusing, noJournal()
	case e.Passed.Known() && full && sure, (!e.Passed.Known() || !sure) && running >= v.one.Slots:
		return Full, noFreeSlots(v.one, running)
	case e.Passed.Known() && full:
		return Full, Text{
			fmt.Sprintf("It was probably full: the note of the node that sent the run fits it and another instance alike; rows have %d of %d slots taken.", running, v.one.Slots),
			fmt.Sprintf("很可能当时已满：发送节点的标记同时符合它与另一个实例；按记录槽位已用 %d/%d。", running, v.one.Slots),
		}
	case e.Passed.Wished():
		return NotChosen, Text{"Somebody had asked for the chosen one when the run was created.", "创建运行时已指定被选中的实例。"}
	case !known || !ahead:
		return NotChosen, v.run.reached(v.later(), len(possible))
	case e.Passed.Known() && v.run.missing(len(possible)) > 0:
		return NotConnected, v.outOfReach()
	case e.Passed.Known():
		return NotChosen, Text{
			"It had room, and by the rows it came before the chosen one; the node that sent the run had not counted the job's newest runs yet, and its own count named the other one.",
			"当时有空闲，按记录应排在被选中的实例之前；发送节点尚未计入该任务最近的运行，按自身计数选择了另一个实例。",
		}
	default:
		return NotChosen, Text{
			fmt.Sprintf("By the rows it came before the chosen one, with %d of %d slots taken; why it was passed over was not kept: a version of Carillon sent the run that did not do so.", running, v.one.Slots),
			fmt.Sprintf("按记录它应排在被选中的实例之前（已用槽位 %d/%d）；发送该次运行的版本未保留跳过它的原因。", running, v.one.Slots),
		}
	}
}

func taken(i *domain.Instance, n int) Text {
	return Text{fmt.Sprintf("It was full: %d of %d slots were taken.", n, i.Slots), fmt.Sprintf("当时已满：槽位已用 %d/%d。", n, i.Slots)}
}

// noFreeSlots is for an instance of which the node that sent the run knew that it had
// no room. Rows count runs, and a run may take several slots (docs/adr/0036), or a
// large input (docs/adr/0042).
func noFreeSlots(i *domain.Instance, running int) Text {
	if running >= i.Slots {
		return taken(i, running)
	}
	return Text{
		fmt.Sprintf("It had no room for the run, which the node that sent it knew from the instance itself; rows count %d runs on its %d slots.", running, i.Slots),
		fmt.Sprintf("当时没有容纳该次运行的空间（发送节点由实例自身得知）；按记录其 %d 个槽位上有 %d 个运行。", i.Slots, running),
	}
}

// neverSent is for a run that waited for an instance until it ended.
func (v rival) neverSent() (Verdict, Text) {
	if n := v.run.Choice.Running[v.one.ID]; n >= v.one.Slots {
		return Full, taken(v.one, n)
	}
	if v.run.Spec.Routing.Pinned() {
		return NotChosen, Text{fmt.Sprintf("The routing strategy %s takes another one, and waited for it.", v.run.Spec.Routing),
			fmt.Sprintf("路由策略 %s 选择其他实例，并一直等待它。", v.run.Spec.Routing)}
	}
	return Full, Text{"It had no room as long as the run waited.", "在该次运行等待期间一直没有空闲。"}
}

// missing is how many of those that could have run it were not looked at: the
// node that chose had no connection to them that it trusted.
func (r Run) missing(possible int) int {
	n, more := r.Execution.Passed.Looked()
	if more || n == 0 {
		return 0
	}
	return max(possible-n, 0)
}

// reached adds how many the node could choose from, where it was not all.
func (r Run) reached(t Text, possible int) Text {
	gone := r.missing(possible)
	if gone == 0 {
		return t
	}
	return Text{t.En + fmt.Sprintf(" (The node that sent the run had %d of the %d within reach.)", possible-gone, possible),
		t.Zh + fmt.Sprintf("（发送节点当时可用 %d 个实例，共 %d 个。）", possible-gone, possible)}
}

func (v rival) outOfReach() Text {
	if !v.one.GoneAt.IsZero() {
		return Text{"The node that sent the run could not reach it any more; it was gone at " + clock(v.one.GoneAt) + ".",
			"发送节点当时已无法连接它；它于 " + clock(v.one.GoneAt) + " 离开。"}
	}
	return Text{"The node that sent the run had no working connection to it.", "发送节点当时与它没有可用的连接。"}
}

// later says why the strategy put the instance behind the chosen one.
func (v rival) later() Text {
	if t, ok := v.unpreferred(); ok {
		return t
	}
	switch s := v.run.Spec.Routing; s {
	case domain.RouteFirst, domain.RouteFailover, domain.RouteBusyOver, domain.RouteLast:
		return v.byOrder(s)
	case domain.RouteConsistentHash:
		key, keyZh := v.run.key()
		return Text{"It does not have " + key + ": the hash of the instances' names gives it to the chosen one.", keyZh + "不属于它：按实例名称的哈希归被选中的实例。"}
	case domain.RouteLeastFrequentlyUsed:
		return v.byCount()
	case domain.RouteLeastRecentlyUsed:
		return v.byLastUse()
	case domain.RouteLeastLoaded:
		return v.byLoad()
	case domain.RouteRandom:
		return Text{"The lot fell on another one.", "随机选中了其他实例。"}
	default:
		return v.byTurn()
	}
}

func (v rival) byOrder(s domain.Routing) Text {
	if v.chosen == nil {
		return Text{fmt.Sprintf("For the routing strategy %s another one comes before it.", s), fmt.Sprintf("按路由策略 %s，有其他实例排在它之前。", s)}
	}
	return Text{fmt.Sprintf("For the routing strategy %s the chosen one comes before it: that one connected at %s, this one at %s.", s, clock(v.chosen.ConnectedAt), clock(v.one.ConnectedAt)),
		fmt.Sprintf("按路由策略 %s，被选中的实例排在它之前：前者于 %s 连接，它于 %s 连接。", s, clock(v.chosen.ConnectedAt), clock(v.one.ConnectedAt))}
}

func (v rival) byTurn() Text {
	if len(v.run.Choice.Uses) == 0 {
		return Text{"Its turn came later: the job had no earlier run to go on from, and a lot decided who is first.", "尚未轮到：此前没有运行可供接续，首个实例由随机决定。"}
	}
	last := v.run.Choice.Uses[0]
	if at := v.run.lastUse(v.one.ID); !at.IsZero() {
		return Text{"Its turn came later: last used " + clock(at) + ", and after the run before this one, on " + v.run.nameOf(last.Instance) + ", the chosen one is next.",
			"尚未轮到：它最近于 " + clock(at) + " 被使用；上一次运行在 " + v.run.nameOf(last.Instance) + "，其后轮到被选中的实例。"}
	}
	return Text{"Its turn came later: the run before this one went to " + v.run.nameOf(last.Instance) + " at " + clock(last.OfferedAt) + ", and after it the chosen one is next.",
		"尚未轮到：上一次运行于 " + clock(last.OfferedAt) + " 派发给 " + v.run.nameOf(last.Instance) + "，其后轮到被选中的实例。"}
}

func (v rival) byCount() Text {
	mine, others, of := v.run.countOf(v.one.ID), v.run.countOf(v.run.Execution.Instance), len(v.run.Choice.Uses)
	if mine > others {
		return Text{fmt.Sprintf("Another one had fewer runs: of the job's last %d it had got %d, the chosen one %d.", of, mine, others),
			fmt.Sprintf("其他实例被使用得更少：在任务最近 %d 次运行中，它为 %d 次，被选中的实例为 %d 次。", of, mine, others)}
	}
	t := v.byLastUse()
	return Text{fmt.Sprintf("Both had got %d of the job's last %d runs. ", mine, of) + t.En, fmt.Sprintf("两者在任务最近 %d 次运行中均为 %d 次。", of, mine) + t.Zh}
}

func (v rival) byLastUse() Text {
	mine, others, of := v.run.lastUse(v.one.ID), v.run.lastUse(v.run.Execution.Instance), len(v.run.Choice.Uses)
	switch {
	case mine.IsZero():
		return Text{fmt.Sprintf("Neither it nor the chosen one was used in the job's last %d runs, and the lot fell on the other.", of),
			fmt.Sprintf("在任务最近 %d 次运行中两者都未被使用，由随机决定。", of)}
	case others.IsZero():
		return Text{fmt.Sprintf("It was used at %s, and the chosen one in none of the job's last %d runs.", clock(mine), of),
			fmt.Sprintf("它曾于 %s 被使用，而被选中的实例在任务最近 %d 次运行中未被使用。", clock(mine), of)}
	}
	return Text{"It was used more recently: at " + clock(mine) + ", the chosen one at " + clock(others) + ".",
		"它最近才被使用：" + clock(mine) + "；被选中的实例为 " + clock(others) + "。"}
}

func (v rival) byLoad() Text {
	if v.chosen == nil {
		return Text{"Another one was less loaded.", "其他实例的负载更低。"}
	}
	mine, others := v.run.Choice.Running[v.one.ID], v.run.Choice.Running[v.chosen.ID]
	en := fmt.Sprintf("%d of %d slots taken against %d of %d", mine, v.one.Slots, others, v.chosen.Slots)
	zh := fmt.Sprintf("槽位已用 %d/%d，被选中的实例为 %d/%d", mine, v.one.Slots, others, v.chosen.Slots)
	switch {
	case mine*v.chosen.Slots > others*v.one.Slots:
		return Text{"Another one had fewer runs: " + en + ".", "其他实例的运行更少：" + zh + "。"}
	case v.run.Execution.Passed.Tied():
		return Text{"Others were loaded as little (" + en + "), and it was the turn of the chosen one.", "负载相同（" + zh + "），轮到被选中的实例。"}
	}
	return Text{"The chosen one was less loaded by its CPU and memory, which its heartbeats tell and no row keeps; by rows: " + en + ".",
		"被选中的实例的 CPU 与内存负载更低（来自心跳，不入库）；按记录：" + zh + "。"}
}

// ahead reports whether the strategy had the instance before the chosen one;
// known is false where rows do not tell: by lot, load and hash.
func (v rival) ahead() (ahead, known bool) {
	c := v.run.Execution.Instance
	if _, ok := v.unpreferred(); ok {
		return false, true
	}
	if o := v.chosen; o != nil && v.run.Spec.Prefer.Matches(v.one.Labels) && !v.run.Spec.Prefer.Matches(o.Labels) {
		return true, true
	}
	switch v.run.Spec.Routing {
	case domain.RouteFirst, domain.RouteFailover, domain.RouteBusyOver:
		return v.one.ID < c, true
	case domain.RouteLast:
		return v.one.ID > c, true
	case domain.RouteRandom, domain.RouteLeastLoaded, domain.RouteConsistentHash:
		return false, false
	case domain.RouteLeastFrequentlyUsed, domain.RouteLeastRecentlyUsed:
		mine, others := v.run.countOf(v.one.ID), v.run.countOf(c)
		if v.run.Spec.Routing == domain.RouteLeastFrequentlyUsed && mine != others {
			return mine < others, true
		}
		a, b := v.run.lastUse(v.one.ID), v.run.lastUse(c)
		return a.Before(b), !a.Equal(b)
	}
	if len(v.run.Choice.Uses) == 0 {
		return false, false
	}
	last := uint64(v.run.Choice.Uses[0].Instance)
	return uint64(v.one.ID)-last-1 < uint64(c)-last-1, true
}

func (r Run) countOf(id domain.InstanceID) (n int) {
	for _, u := range r.Choice.Uses {
		if u.Instance == id {
			n++
		}
	}
	return n
}

// lastUse is zero for an instance that is not among the uses.
func (r Run) lastUse(id domain.InstanceID) time.Time {
	if at := slices.IndexFunc(r.Choice.Uses, func(u domain.Use) bool { return u.Instance == id }); at >= 0 {
		return r.Choice.Uses[at].OfferedAt
	}
	return time.Time{}
}

func (r Run) nameOf(id domain.InstanceID) string {
	return cmp.Or(r.names()[id], id.String())
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
func (v rival) unpreferred() (Text, bool) {
	lacks := v.run.Spec.Prefer.Unmet(v.one.Labels)
	if o := v.chosen; lacks != "" && o != nil && v.run.Spec.Prefer.Matches(o.Labels) {
		return Text{fmt.Sprintf("It does not meet the preferred labels (%s), and the chosen one does.", lacks),
			fmt.Sprintf("它不满足优先标签（%s），而被选中的实例满足。", lacks)}, true
	}
	return Text{}, false
}

// waitsFor reports whether a run that waits would take the instance if it had
// room: a strategy that takes one instance only waits for that one.
func (r Run) waitsFor(i *domain.Instance) bool {
	e := &r.Execution
	if !r.Spec.Routing.Pinned() || r.Spec.Routing == domain.RouteFailover && e.Sends().Tried() {
		return true
	}
	for n := range r.Instances {
		o := &r.Instances[n]
		if o.ID == i.ID || r.standing(o, r.Now) != "" {
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
