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
	var out []Candidate
	for i := range r.Instances {
		one := &r.Instances[i]
		if !one.GoneAt.IsZero() && one.GoneAt.Before(e.FireAt) {
			continue // it was gone before this run was due
		}
		verdict := r.judge(one, at, waits)
		d, gotOne := refused[one.ID]
		if gotOne && verdict != Chosen {
			verdict = Refused
		}
		out = append(out, Candidate{int64(one.ID), one.Name, verdict, r.say(one, verdict, d, at)})
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

func (r Run) judge(i *domain.Instance, at time.Time, now bool) Verdict {
	if !now && i.ID == r.Execution.Instance {
		return Chosen
	}
	switch v := r.standing(i, at, now); {
	case v != "":
		return v
	case !now || !r.waitsFor(i):
		return NotChosen
	case i.Refusing:
		return Refusing
	case i.Running >= i.Slots:
		return Full
	default:
		return HasRoom
	}
}

// standing says what keeps an instance out, whatever the strategy; empty:
// nothing. How it stands is known only of the present.
func (r Run) standing(i *domain.Instance, at time.Time, now bool) Verdict {
	switch {
	case i.ConnectedAt.After(at), !i.GoneAt.IsZero() && !i.GoneAt.After(at):
		return NotConnected
	case !slices.Contains(i.Handlers, r.Spec.Handler):
		return NoHandler
	case !r.Spec.Require.Matches(i.Labels):
		return LabelMismatch
	case !now:
		return ""
	case i.LeaseUntil.Before(r.Now):
		return Silent
	case i.Draining:
		return Draining
	default:
		return ""
	}
}

func (r Run) say(i *domain.Instance, v Verdict, d domain.Delay, at time.Time) Text {
	switch v {
	case Chosen:
		return Text{"It was chosen.", "被选中。"}
	case Refused:
		return Text{"It got an offer at " + clock(d.LastAt) + ", which led to nothing, because " + because(d.Reason).En + ".",
			"曾于 " + clock(d.LastAt) + " 收到派发，但未成功：" + because(d.Reason).Zh + "。"}
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
	case NotChosen:
		if r.waits() {
			return Text{fmt.Sprintf("The routing strategy %s takes another one, and waits for it.", r.Spec.Routing),
				fmt.Sprintf("路由策略 %s 选择其他实例，并等待它。", r.Spec.Routing)}
		}
		return r.passed(i)
	case Silent:
		return Text{"Its lease ran out at " + clock(i.LeaseUntil) + ".", "租约已于 " + clock(i.LeaseUntil) + " 到期。"}
	case Draining:
		return Text{"It is stopping and takes nothing new.", "正在退出，不再接收新任务。"}
	case Refusing:
		return Text{"It takes nothing new, because its journal cannot be written: the disk of its journal's folder is full, or it may not write there.",
			"无法写入日志（journal），因此不接收新任务：journal 目录所在磁盘已满，或没有写入权限。"}
	case Full:
		return Text{fmt.Sprintf("All its slots are taken, %d of %d.", i.Running, i.Slots), fmt.Sprintf("槽位已满（%d/%d）。", i.Running, i.Slots)}
	default:
		return Text{fmt.Sprintf("It has room, %d of %d slots are taken.", i.Running, i.Slots), fmt.Sprintf("有空闲槽位（已用 %d/%d）。", i.Running, i.Slots)}
	}
}
