package explain

import (
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// unoffered is what kept a run that waited for an instance until its wait was
// over, and that nobody has tried to send meanwhile.
var unoffered = Text{
	"no admin node tried to send it before its wait was over: none was working, or the database was away",
	"在等待期限内没有管理节点尝试派发：没有管理节点在工作，或数据库不可用",
}

// party is whose doing it is that the run waits, or ended as it did.
func (r Run) party() Party {
	e := &r.Execution
	switch {
	case e.State == domain.Offered, e.State == domain.Running, e.State == domain.Succeeded:
		return Nobody
	case r.neverTried():
		return ByAdmin
	}
	return reasons[e.Reason].by
}

// unattendedFor is how long after the end of a run's wait it is ended at the
// latest, where a node works.
const unattendedFor = 5 * time.Second

// neverTried reports whether the run ended for want of an instance although
// nobody looked for one: its row has no note of that, and its wait had been over
// for long when a node came to it.
func (r Run) neverTried() bool {
	e := &r.Execution
	return e.Reason == domain.ReasonNoExecutor && e.Attempt == 0 && len(e.Delays) == 0 &&
		!e.ExpireAt.IsZero() && e.FinishedAt.Sub(e.ExpireAt) > unattendedFor
}

// why is because for the run, with what its row knows beside the code.
func (r Run) why() Text {
	e := &r.Execution
	switch {
	case r.neverTried():
		return unoffered
	case e.Reason == domain.ReasonPaused && r.Pause.By != "":
		return Text{r.Pause.By + " paused the job before it started", "任务在它开始之前被 " + r.Pause.By + " 暂停"}.noted(r.Pause.Note)
	case e.Reason == domain.ReasonMaintenance && e.Message != "":
		return Text{"nothing was to start (" + e.Message + ")", "处于维护期间，不启动任何运行（" + e.Message + "）"}
	case e.Reason == domain.ReasonKilled:
		return cancelled(e.Message)
	}
	return because(e.Reason)
}

// noted adds in brackets why, in the words of a person.
func (t Text) noted(note string) Text {
	if note == "" {
		return t
	}
	return Text{t.En + " (" + note + ")", t.Zh + "（" + note + "）"}
}

// cancelled is because for a run that somebody cancelled: the message says who,
// and often what for.
func cancelled(message string) Text {
	who, what, _ := strings.Cut(message, ": ")
	caller, byCaller := strings.CutPrefix(who, "cancelled by its caller ")
	name, known := strings.CutPrefix(who, "cancelled by ")
	var t Text
	switch {
	case byCaller:
		t = Text{"its caller " + caller + " cancelled it", "被其调用方 " + caller + " 取消"}
	case known:
		t = Text{name + " cancelled it", "被 " + name + " 取消"}
	default:
		return because(domain.ReasonKilled)
	}
	if what != "" {
		t.En += ": " + what
		t.Zh += "：" + what
	}
	return t
}
