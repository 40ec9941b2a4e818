package explain

import (
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// blockers says who holds the slot that the run waits for. A run that has
// ended, and whose handler still runs, surprises: it comes first.
func (r Run) blockers() (out Text) {
	names := r.names()
	for _, lingering := range []bool{true, false} {
		for i := range r.Holders {
			h := &r.Holders[i]
			if h.ID == r.Execution.ID || h.Lingers != lingering {
				continue
			}
			where, whereZh := places(h, names)
			if lingering {
				out.En += fmt.Sprintf("; run %s before it ended as %s at %s, but its handler still runs%s", h.ID, h.State, clock(h.FinishedAt), where)
				out.Zh += fmt.Sprintf("；此前的运行 %s 已于 %s 以“%s”结束，但其处理器%s仍在运行", h.ID, clock(h.FinishedAt), states[h.State], whereZh)
			} else if h.State.OnInstance() {
				out.En += fmt.Sprintf("; run %s still runs%s", h.ID, where)
				out.Zh += fmt.Sprintf("；运行 %s %s仍在进行", h.ID, whereZh)
			}
		}
	}
	return out
}

// places says where a handler runs, and since when.
func places(e *domain.Execution, names map[domain.InstanceID]string) (en, zh string) {
	if e.Stage != domain.StageNone {
		return " in its shards since " + clock(e.StartedAt), "自 " + clock(e.StartedAt) + " 起以分片方式"
	}
	name, ok := names[e.Instance]
	if !ok {
		name = e.Instance.String()
	}
	en, zh = " on instance "+name, "在实例 "+name+" 上"
	if !e.StartedAt.IsZero() {
		en, zh = en+" since "+clock(e.StartedAt), "自 "+clock(e.StartedAt)+" 起"+zh
	}
	return en, zh
}

// lingers adds to a summary that the handler of an ended run still runs.
func (r Run) lingers(t Text) Text {
	if !r.Execution.Lingers {
		return t
	}
	if r.isParent() {
		t.En += " The handler of a shard still runs, and it keeps its slot until that has returned or its instance is gone."
		t.Zh += "仍有分片的处理器在运行；在其返回或实例消失之前，该运行仍占用槽位。"
		return t
	}
	where, whereZh := places(&r.Execution, r.names())
	told := clock(r.Execution.FinishedAt)
	t.En += " Its handler was told to stop, had not done so at " + told + " and still runs" + where + ", and it keeps its slot until that has returned or its instance is gone."
	t.Zh += "其处理器已被要求停止，但截至 " + told + " 仍未停止，现" + whereZh + "仍在运行；在处理器返回或实例消失之前，该运行仍占用槽位。"
	return t
}

// stopping says of a run that was asked to stop why, where its handler still
// runs, and what becomes of it if it does not listen.
func (r Run) stopping() Text {
	e := &r.Execution
	if r.isParent() {
		return Text{"It is running and has been asked to stop.", "正在运行，已请求停止。"}
	}
	reason := r.why()
	where, whereZh := places(e, r.names())
	return Text{
		"It was asked to stop, because " + reason.En + ". Its handler has not returned yet and still runs" + where +
			"; if it does not listen, the run ends all the same after the executor's grace time, and is said to linger.",
		"已请求停止：" + reason.Zh + "。其处理器尚未返回，" + whereZh + "仍在运行；如果处理器不响应，执行器的宽限时间过后该运行仍会结束，并标记为处理器仍在运行。",
	}
}
