package explain

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// span is a part of the time by which a run started late, and what filled it.
type span struct {
	from time.Time
	why  Text
}

// leftAlone is how long after an offer that led to nothing the next one comes at
// the latest, where nodes work and the job wants no longer pause.
const leftAlone = 10 * time.Second

var (
	plannedLate = Text{
		"it was planned only after its time: no admin node was working, or the run was asked for later",
		"在触发时间之后才生成（当时没有管理节点在工作，或事后才被请求）",
	}
	unattended = Text{
		"nobody offered it meanwhile: no admin node was working, the database was away, or both had too much to do",
		"期间无人派发：没有管理节点在工作、数据库不可用，或二者过于繁忙",
	}
	slowStart = Text{
		"its instance took that long to start it after the offer",
		"实例在收到派发后过了这么久才启动",
	}
)

// whyLate is what filled most of the time from when the run was due to its
// start; empty when nothing is known.
func (r Run) whyLate(due time.Time) (why Text) {
	longest := punctual / 2
	spans := r.spans(due)
	for i, s := range spans {
		until := r.Execution.StartedAt
		if i+1 < len(spans) {
			until = spans[i+1].from
		}
		if long := until.Sub(s.from); long >= longest {
			longest, why = long, s.why
		}
	}
	return why
}

// spans are in the order of time.
func (r Run) spans(due time.Time) []span {
	e := &r.Execution
	var out []span
	add := func(from time.Time, why Text) {
		for len(out) > 1 && out[len(out)-1].from.After(from) {
			out = out[:len(out)-1]
		}
		out = append(out, span{from, why})
	}
	add(due, unattended)
	if e.PlannedAt.Sub(due) > punctual {
		out[0].why = plannedLate
		add(e.PlannedAt, unattended)
	}
	for _, d := range e.Delays {
		if d.Stop {
			continue
		}
		why := limitReason(d.Reason, d.Message)
		if d.Message != "" && d.Reason == domain.ReasonWaitInstance {
			more := told(d.Message)
			why = Text{why.En + ": " + more.En, why.Zh + "：" + more.Zh}
		}
		add(d.At, why)
		if d.Instance != 0 && (r.Spec == nil || r.Spec.SendRetry.Delay == 0) { // an offer that came back, not a wait
			add(d.LastAt.Add(leftAlone), unattended)
		}
	}
	if !e.OfferedAt.IsZero() {
		add(e.OfferedAt, slowStart)
	}
	return out
}
