package explain

import (
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// unoffered is why a run was missed that no admin node tried to send.
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
	}
	return reasons[e.Reason].by
}

// neverTried reports whether no admin node looked for an instance for a run that is not
// of a schedule.
func (r Run) neverTried() bool {
	e := &r.Execution
	return e.Reason == domain.ReasonMisfire && e.Cause != domain.CauseSchedule && e.Cause != domain.CauseMisfire
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
