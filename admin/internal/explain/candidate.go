package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// candidates judges each instance: at the moment of the last offer, or now
// for a run that waits for one.
func (r Run) candidates() []Candidate {
	e := &r.Execution
	waits := r.waits()
	at := e.OfferedAt
	switch {
	case waits:
		at = r.Now
	case at.IsZero() && e.Reason != domain.ReasonNoExecutor && e.Reason != domain.ReasonSendFailed:
		return nil // it was never to be sent to anybody
	case at.IsZero():
		at = e.FinishedAt // it waited for an instance until then
	}
	refused := map[domain.InstanceID]domain.Delay{}
	for _, d := range e.Delays {
		if d.Instance != 0 {
			refused[d.Instance] = d
		}
	}
	possible := r.possible(at)
	var out []Candidate
	for i := range r.Instances {
		one := &r.Instances[i]
		if !one.GoneAt.IsZero() && one.GoneAt.Before(e.FireAt) {
			continue // it was gone before this run was due
		}
		verdict, text := r.judge(one, at, possible)
		if d, gotOne := refused[one.ID]; gotOne && verdict != Chosen {
			verdict, text = Refused, refusal(d)
		}
		out = append(out, Candidate{int64(one.ID), one.Name, verdict, text})
	}
	slices.SortFunc(out, func(a, b Candidate) int {
		if (a.Verdict == Chosen) != (b.Verdict == Chosen) {
			if a.Verdict == Chosen {
				return -1
			}
			return 1
		}
		return int(min(max(a.ID-b.ID, -1), 1))
	})
	return out
}

// waits reports whether the run has still to be sent.
func (r Run) waits() bool {
	return r.Execution.State == domain.Due || r.Execution.State == domain.RetryWait
}

// possible are those that nothing but their room and the strategy kept from it.
func (r Run) possible(at time.Time) (out []domain.InstanceID) {
	for i := range r.Instances {
		one := &r.Instances[i]
		if fits := r.Execution.Bound == 0 || r.Execution.Bound == one.ID; fits && r.standing(one, at) == "" || one.ID == r.Execution.Instance {
			out = append(out, one.ID)
		}
	}
	return out
}

func (r Run) judge(i *domain.Instance, at time.Time, possible []domain.InstanceID) (Verdict, Text) {
	now := r.waits()
	if !now && i.ID == r.Execution.Instance {
		return Chosen, Text{"It was chosen.", "被选中。"}
	}
	switch v := r.standing(i, at); {
	case v != "":
		return v, r.outside(i, v, at)
	case r.Execution.Bound != 0 && i.ID != r.Execution.Bound:
		return NotChosen, Text{"The shard is for instance " + r.nameOf(r.Execution.Bound) + " alone.", "该分片仅限实例 " + r.nameOf(r.Execution.Bound) + "。"}
	case !now:
		return r.rival(i).passed(possible)
	case !r.waitsFor(i):
		return NotChosen, Text{fmt.Sprintf("The routing strategy %s takes another one, and waits for it.", r.Spec.Routing),
			fmt.Sprintf("路由策略 %s 选择其他实例，并等待它。", r.Spec.Routing)}
	case i.Refusing:
		return Refusing, noJournal()
	case i.Running >= i.Slots:
		return Full, Text{fmt.Sprintf("All its slots are taken, %d of %d.", i.Running, i.Slots), fmt.Sprintf("槽位已满（%d/%d）。", i.Running, i.Slots)}
	default:
		return HasRoom, Text{fmt.Sprintf("It has room, %d of %d slots are taken.", i.Running, i.Slots), fmt.Sprintf("有空闲槽位（已用 %d/%d）。", i.Running, i.Slots)}
	}
}

// standing says what keeps an instance out at an instant, whatever the strategy
// and its room; empty: nothing.
func (r Run) standing(i *domain.Instance, at time.Time) Verdict {
	switch {
	case i.ConnectedAt.After(at), !i.GoneAt.IsZero() && !i.GoneAt.After(at):
		return NotConnected
	case !slices.Contains(i.Handlers, r.Spec.Handler):
		return NoHandler
	case !r.Spec.Require.Matches(i.Labels):
		return LabelMismatch
	case i.LeaseUntil.Before(at): // leases only grow
		return Silent
	case i.Draining && !i.DrainingAt.After(at) && (r.waits() || !i.DrainingAt.IsZero()):
		return Draining
	default:
		return ""
	}
}

// outside says the same in words.
func (r Run) outside(i *domain.Instance, v Verdict, at time.Time) Text {
	switch v {
	case NotConnected:
		if i.ConnectedAt.After(at) {
			return Text{"It connected only at " + clock(i.ConnectedAt) + ".", "之后才连接（" + clock(i.ConnectedAt) + "）。"}
		}
		return Text{"It had gone at " + clock(i.GoneAt) + ".", "此前已离开（" + clock(i.GoneAt) + "）。"}
	case NoHandler:
		return Text{fmt.Sprintf("It does not serve the handler %q.", r.Spec.Handler), fmt.Sprintf("没有处理器“%s”。", r.Spec.Handler)}
	case LabelMismatch:
		lacks := r.Spec.Require.Unmet(i.Labels)
		return Text{"It does not meet the labels that the job requires: " + lacks + ".", "不满足任务要求的标签：" + lacks + "。"}
	case Silent:
		return Text{"Its lease ran out at " + clock(i.LeaseUntil) + "; it was last heard at " + clock(i.LastSeenAt) + ".",
			"租约已于 " + clock(i.LeaseUntil) + " 到期，最近一次心跳为 " + clock(i.LastSeenAt) + "。"}
	default:
		return r.leaving(i)
	}
}

func (r Run) leaving(i *domain.Instance) Text {
	if i.DrainingAt.IsZero() { // noted by a version that did not say when
		return Text{"It is stopping and takes nothing new.", "正在退出，不再接收新任务。"}
	}
	return Text{"It was leaving since " + clock(i.DrainingAt) + " and takes nothing new.", "自 " + clock(i.DrainingAt) + " 起正在退出，不再接收新任务。"}
}

func refusal(d domain.Delay) Text {
	return Text{"It got an offer at " + clock(d.LastAt) + ", which led to nothing, because " + because(d.Reason).En + ".",
		"曾于 " + clock(d.LastAt) + " 收到派发，但未成功：" + because(d.Reason).Zh + "。"}
}

func noJournal() Text {
	return Text{"It takes nothing new, because its journal cannot be written: the disk of its journal's folder is full, or it may not write there.",
		"无法写入日志（journal），因此不接收新任务：journal 目录所在磁盘已满，或没有写入权限。"}
}
