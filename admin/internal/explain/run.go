package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Run is what has to be known of a run.
type Run struct {
	Execution domain.Execution
	Spec      *domain.JobSpec // of the run's revision
	// Attempts are those that were followed by another one.
	Attempts []domain.Attempt
	// Instances are those of its executor, the gone ones too.
	Instances []domain.Instance
	// Choice is what rows tell of the moment of the last offer.
	Choice domain.Choice
	// Holders are the runs that hold the slot of its job now; only needed for
	// one that waits for it.
	Holders []domain.Execution
	// Waiting is how many runs of its job wait for the slot, and PilesUp that they do
	// because its runs take longer than its interval. Likewise.
	Waiting int64
	PilesUp bool
	// Limits are those of its tenant and its executor; only needed for one that
	// waits under one of them.
	Limits []LimitCount
	// Parts are those of a run with shards, the first ones, and Family counts all.
	Parts  []domain.Execution
	Family domain.Family
	Now    time.Time // the database's clock
	// Pause is the one that ended the run, if the job is still paused.
	Pause domain.Pause
}

// Explain puts the life of a run into words.
func (r Run) Explain() Explanation {
	if r.isParent() {
		return Explanation{Summary: r.lingers(r.family()), Party: r.party(), Steps: r.steps()}
	}
	summary := r.lingers(r.quoted(r.summary()))
	if r.Execution.IsPart() {
		t := r.belongs()
		summary = Text{t.En + ". " + summary.En, t.Zh + "。" + summary.Zh}
	}
	return Explanation{Summary: summary, Party: r.party(), Steps: r.steps(), Candidates: r.candidates()}
}

// quoted puts what the handler said of its failure before the sentence.
func (r Run) quoted(t Text) Text {
	line := domain.ErrorLine(r.Execution.Error)
	switch r.Execution.State {
	case domain.Failed, domain.TimedOut, domain.Lost, domain.RetryWait:
	default:
		line = ""
	}
	if line == "" {
		return t
	}
	return Text{"“" + line + "”. " + t.En, "“" + line + "”。" + t.Zh}
}

// punctual is the lateness below which nothing has to be explained.
const punctual = time.Second

func (r Run) summary() Text {
	e := &r.Execution
	reason := r.why()
	switch e.State {
	case domain.Due, domain.RetryWait:
		return r.waiting()
	case domain.Offered:
		return Text{"It was sent to an instance, which has not answered yet.", "已派发给实例，正在等待应答。"}
	case domain.Running:
		return r.late(Text{"It is running", "正在运行"})
	case domain.Cancelling:
		return r.stopping()
	case domain.Succeeded:
		return r.late(Text{"It ran and succeeded", "运行成功"})
	case domain.Failed, domain.TimedOut:
		if e.Attempt == 0 {
			return Text{"It did not run, because " + reason.En + ".", "未运行：" + reason.Zh + "。"}
		}
		return Text{
			fmt.Sprintf("It ended as %s after %s, because %s.", e.State, attempts(e.Attempt).En, reason.En),
			fmt.Sprintf("经过%s后以“%s”结束：%s。", attempts(e.Attempt).Zh, states[e.State], reason.Zh),
		}
	case domain.Cancelled:
		if e.Attempt == 0 {
			return Text{"It did not run, because " + reason.En + ".", "未运行：" + reason.Zh + "。"}
		}
		return Text{"It was stopped, because " + reason.En + ".", "被停止：" + reason.Zh + "。"}
	case domain.Lost:
		return Text{
			"Its outcome is unknown, because " + reason.En + ". It is not repeated, since the job does not allow to repeat an unknown outcome or its attempts are used up.",
			"结果未知：" + reason.Zh + "。由于任务不允许在结果未知时重跑，或尝试次数已用尽，不会再次运行。",
		}
	default: // missed, discarded, excluded
		if e.Reason == domain.ReasonCalendar && e.Message != "" {
			// Which calendar, which day.
			reason = Text{reason.En + ": " + e.Message, reason.Zh + "：" + e.Message}
		}
		return Text{"It did not run, because " + reason.En + ".", "未运行：" + reason.Zh + "。"}
	}
}

func attempts(n int) Text {
	if n == 1 {
		return Text{"one attempt", "1 次尝试"}
	}
	return Text{fmt.Sprintf("%d attempts", n), fmt.Sprintf(" %d 次尝试", n)}
}

// waiting says what a run waits for.
func (r Run) waiting() Text {
	e := &r.Execution
	switch {
	case r.Now.Before(e.NotBefore) && (e.Reason == domain.ReasonSnoozed || e.Reason == domain.ReasonStopped):
		return Text{"An attempt ended that does not count, because " + because(e.Reason).En + "; the next one comes at " + clock(e.NotBefore) + ".",
			"上一次尝试不计入次数：" + because(e.Reason).Zh + "；下一次尝试时间为 " + clock(e.NotBefore) + "。"}
	case r.Now.Before(e.NotBefore) && e.State == domain.RetryWait:
		return Text{"An attempt ended badly, because " + because(e.Reason).En + "; the next one comes at " + clock(e.NotBefore) + ".",
			"上一次尝试未成功：" + because(e.Reason).Zh + "；下一次尝试时间为 " + clock(e.NotBefore) + "。"}
	case r.Now.Before(e.NotBefore):
		return Text{"It waits for its time, " + clock(e.NotBefore) + ".", "等待触发时间 " + clock(e.NotBefore) + "。"}
	case e.Reason == "":
		return Text{"It is due and about to be sent to an instance.", "已到触发时间，即将派发。"}
	}
	why := r.underLimit(e.Reason, e.Message)
	out := Text{"It is due and waits, because " + why.En, "已到触发时间，正在等待：" + why.Zh}
	if e.Reason == domain.ReasonWaitInstance && e.Message != "" {
		more := told(e.Message)
		out.En, out.Zh = out.En+": "+more.En, out.Zh+"："+more.Zh
	}
	if e.Reason == domain.ReasonWaitSlot {
		by := r.blockers()
		out.En, out.Zh = out.En+by.En, out.Zh+by.Zh
		if r.PilesUp {
			out.En += fmt.Sprintf("; runs take longer than the interval, and %d wait", r.Waiting)
			out.Zh += fmt.Sprintf("；运行时间超过触发间隔，有 %d 次运行在等待", r.Waiting)
		}
	}
	if !e.ExpireAt.IsZero() && e.Reason == domain.ReasonWaitInstance {
		out.En += "; it waits until " + clock(e.ExpireAt)
		out.Zh += "；最多等待至 " + clock(e.ExpireAt)
	}
	return Text{out.En + ".", out.Zh + "。"}
}

// late adds to a sentence by how much the handler started late, and why.
func (r Run) late(begin Text) Text {
	e := &r.Execution
	lateness, started := domain.Lateness(e)
	if !started || e.Attempt > 1 && len(r.Attempts) > 0 {
		return Text{begin.En + ", in attempt " + fmt.Sprint(e.Attempt) + ".", begin.Zh + "（第 " + fmt.Sprint(e.Attempt) + " 次尝试）。"}
	}
	if lateness < punctual {
		return Text{begin.En + "; it started on time.", begin.Zh + "，准时开始。"}
	}
	by := Text{fmt.Sprintf("; it started %s late", round(lateness)), fmt.Sprintf("，延迟 %s 开始", round(lateness))}
	if why := r.whyLate(e.StartedAt.Add(-lateness)); why.En != "" {
		by.En += ", because " + why.En
		by.Zh += "：" + why.Zh
	}
	return Text{begin.En + by.En + ".", begin.Zh + by.Zh + "。"}
}

func round(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// steps lists what happened, by time.
func (r Run) steps() []Step {
	e := &r.Execution
	names := r.names()
	var out []Step
	add := func(at time.Time, code string, en, zh string) {
		if !at.IsZero() {
			out = append(out, Step{at, code, Text{en, zh}})
		}
	}
	add(e.FireAt, "planned", "Its fire time; "+causeText(e.Cause).En+".", "计划触发时间；"+causeText(e.Cause).Zh+"。")
	add(e.PlannedAt, "claimed", "An admin node wrote the run down.", "管理节点写入该次运行。")
	if at, ok := domain.PutOff(e); ok && r.Spec != nil && r.Spec.Schedule.JitterMax > 0 && !r.again() {
		add(at, "put_off", "When it was to start: the schedule's jitter puts each run off.", "应开始的时刻：调度计划的抖动使每次运行随机延后。")
	}
	out = append(out, r.familySteps()...)
	for _, d := range e.Delays {
		out = append(out, delayStep(d, names))
	}
	for _, a := range append(slices.Clone(r.Attempts), r.current()...) {
		name := names[a.Instance]
		add(a.OfferedAt, "offered", fmt.Sprintf("Offered to instance %s (fence %d).", name, a.Fence), fmt.Sprintf("派发给实例 %s（令牌 %d）。", name, a.Fence))
		add(a.GrantedAt, "granted", fmt.Sprintf("Attempt %d was allowed to start.", a.Number), fmt.Sprintf("允许开始第 %d 次尝试。", a.Number))
		add(a.StartedAt, "started", "The handler started, by the executor's clock.", "处理器开始运行（以执行器时钟为准）。")
		if a.State.Terminal() {
			add(a.FinishedAt, "finished", ended(a).En, ended(a).Zh)
		}
	}
	add(e.ReturnedAt, "returned", "The handler, which had not listened to its cancel, was known to run no more.", "未响应取消的处理器确认已不再运行。")
	if e.State.Terminal() && e.Attempt == 0 {
		end := r.summary()
		if r.isParent() {
			end = r.family()
		}
		add(e.FinishedAt, "finished", end.En, end.Zh)
	}
	slices.SortStableFunc(out, func(a, b Step) int { return a.At.Compare(b.At) })
	return out
}

// again says whether another attempt came before the current one; the archive
// has the current one too once it has ended.
func (r Run) again() bool {
	return slices.ContainsFunc(r.Attempts, func(a domain.Attempt) bool { return a.Fence != r.Execution.Fence })
}

// current returns the attempt that stands in the execution, if there is one
// that the archive does not have.
func (r Run) current() []domain.Attempt {
	e := &r.Execution
	if e.OfferedAt.IsZero() || e.Instance == 0 || e.State == domain.RetryWait {
		return nil
	}
	if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Fence == e.Fence {
		return nil
	}
	return []domain.Attempt{e.CurrentAttempt()}
}

func ended(a domain.Attempt) Text {
	if a.Reason == "" {
		return Text{"The attempt ended as " + a.State.String() + ".", "该次尝试结束：" + states[a.State] + "。"}
	}
	return Text{"The attempt ended as " + a.State.String() + ", because " + because(a.Reason).En + ".",
		"该次尝试结束：" + states[a.State] + "，" + because(a.Reason).Zh + "。"}
}

func delayStep(d domain.Delay, names map[domain.InstanceID]string) Step {
	why := limitReason(d.Reason, d.Message)
	t, code := Text{"It could not start, because " + why.En, "未能开始：" + why.Zh}, "delayed:"
	if d.Stop {
		if d.Reason == domain.ReasonKilled {
			why = cancelled(d.Message)
		}
		t, code = Text{"It was asked to stop, because " + why.En, "已请求停止：" + why.Zh}, "stop_asked:"
	}
	if d.Instance != 0 {
		t.En += " (instance " + names[d.Instance] + ")"
		t.Zh += "（实例 " + names[d.Instance] + "）"
	}
	if d.Message != "" && why == because(d.Reason) {
		more := told(d.Message)
		t.En += ": " + more.En
		t.Zh += "：" + more.Zh
	}
	if d.Count > 1 {
		t.En += fmt.Sprintf(" (%d times, last at %s)", d.Count, clock(d.LastAt))
		t.Zh += fmt.Sprintf("（共 %d 次，最近一次 %s）", d.Count, clock(d.LastAt))
	}
	return Step{d.At, code + string(d.Reason), Text{t.En + ".", t.Zh + "。"}}
}

// names maps instances to what people call them; one that is not on the list
// any more keeps its number.
func (r Run) names() map[domain.InstanceID]string {
	out := map[domain.InstanceID]string{}
	add := func(id domain.InstanceID) {
		if _, ok := out[id]; !ok && id != 0 {
			out[id] = id.String()
		}
	}
	for _, i := range r.Instances {
		out[i.ID] = i.Name
	}
	add(r.Execution.Instance)
	for _, a := range r.Attempts {
		add(a.Instance)
	}
	for _, d := range r.Execution.Delays {
		add(d.Instance)
	}
	return out
}
