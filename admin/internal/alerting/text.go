package alerting

import (
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Language selects the words of messages.
type Language string

const (
	English Language = "en"
	Chinese Language = "zh"
)

// ParseLanguage reads a setting; empty means English.
func ParseLanguage(s string) (Language, error) {
	switch l := Language(s); l {
	case "":
		return English, nil
	case English, Chinese:
		return l, nil
	default:
		return "", fmt.Errorf("alert language: %q is not one of en, zh", s)
	}
}

// text is one sentence in every language.
type text struct{ en, zh string }

func (t text) in(l Language) string {
	if l == Chinese {
		return t.zh
	}
	return t.en
}

var titles = map[domain.AlertKind]text{
	domain.AlertRunFailed:   {"Failed: %s", "执行失败：%s"},
	domain.AlertRunTimedOut: {"Timed out: %s", "执行超时：%s"},
	domain.AlertRunLost:     {"Outcome unknown: %s", "执行结果未知：%s"},
	domain.AlertRunMissed:   {"Never started: %s", "未能执行：%s"},
	domain.AlertNoExecutor:  {"No executor online: %s", "没有在线的执行器：%s"},
	domain.AlertTest:        {"Test message: %s", "测试消息：%s"},
	domain.AlertClockJump:   {"The database's clock leapt forward, firing is held%s", "数据库时钟向前跳变，已暂停触发任务%s"},
	domain.AlertRollback:    {"The database has lost commits, firing is held%s", "数据库丢失了已提交的数据，已暂停触发任务%s"},
	domain.AlertFlapping:    {"Processes of an executor come and go%s", "执行器的进程反复上线又离线%s"},
	domain.AlertSetAside:    {"A row in the database cannot be used%s", "数据库中有无法使用的记录%s"},
}

// Title is one line: what happened, to which job.
func (n *Notice) Title(l Language) string {
	t, ok := titles[n.Event.Kind]
	if !ok {
		t = text{"Alert: %s", "告警：%s"}
	}
	if n.Event.Kind.Platform() {
		return fmt.Sprintf(t.in(l), "")
	}
	return fmt.Sprintf(t.in(l), n.JobName())
}

// Summary says in a sentence or two what happened and what follows from it.
func (n *Notice) Summary(l Language) string {
	attempts := 1
	if n.Execution != nil {
		attempts = n.Execution.Attempt
	}
	switch n.Event.Kind {
	case domain.AlertRunFailed:
		if n.Execution != nil && n.Execution.Reason == domain.ReasonSendFailed {
			return text{
				"No instance took the run, however often it was sent. It will not be tried again.",
				"多次派发均无实例接收本次执行，不会再重试。",
			}.in(l)
		}
		if attempts > 1 {
			return fmt.Sprintf(text{
				"The run failed for good, after %d attempts. It will not be tried again.",
				"本次执行在 %d 次尝试后最终失败，不会再重试。",
			}.in(l), attempts)
		}
		return text{"The run failed. It will not be tried again.", "本次执行失败，不会再重试。"}.in(l)
	case domain.AlertRunTimedOut:
		return text{
			"The run took longer than its timeout and was stopped. It will not be tried again.",
			"本次执行超过了超时时间，已被终止，不会再重试。",
		}.in(l)
	case domain.AlertRunLost:
		return text{
			"The instance that worked on this run went silent or died. Nobody knows whether the work was done; please check. It will not be repeated by itself.",
			"负责本次执行的实例失联或已退出，无法得知任务是否已经完成，请人工核对。系统不会自动重复执行。",
		}.in(l)
	case domain.AlertRunMissed:
		if n.Event.Missed > 1 {
			return fmt.Sprintf(text{
				"%d runs of the job never started. What follows is about the last one of them.",
				"该任务有 %d 次执行未能开始，以下为其中最后一次的信息。",
			}.in(l), n.Event.Missed)
		}
		return text{"The run never started.", "本次执行未能开始。"}.in(l)
	case domain.AlertNoExecutor:
		return fmt.Sprintf(text{
			"The job is due, but no instance of executor %s is online to run it.",
			"任务已到触发时间，但执行器 %s 没有任何实例在线，无法执行。",
		}.in(l), n.executorName())
	case domain.AlertClockJump:
		return text{
			"No job is started on any node until most nodes' own clocks agree with the database's, it is set back, or an operator confirms it: carillon cluster confirm-clock.",
			"在多数节点的时钟与数据库一致、数据库时钟被调回、或运维人员执行 carillon cluster confirm-clock 确认之前，所有节点都不会启动任务。",
		}.in(l)
	case domain.AlertRollback:
		return text{
			"It is older than what the nodes have seen: a backup was put back, or a replica took over that lagged behind. No job is started on any node until an operator decides: put a newer copy in place, and then say carillon cluster accept-history.",
			"数据库比各节点见过的状态更旧：可能恢复了备份，或切换到了滞后的副本。在运维人员处理之前，所有节点都不会启动任务：如有更新的副本请先恢复，然后执行 carillon cluster accept-history。",
		}.in(l)
	case domain.AlertFlapping:
		return text{
			"They register and end again within seconds, over and over. They are let in less often until that stops; runs that they were given may be lost. Look at the application's log: it probably crashes after its start.",
			"这些进程注册后几秒内又退出，如此反复。在恢复正常之前系统会限制其接入频率，已派发给它们的执行可能会丢失。请查看应用日志，很可能是启动后崩溃。",
		}.in(l)
	case domain.AlertSetAside:
		return text{
			"It was set aside, and everything else goes on: a run has ended as failed, or a job does not fire until its row is put right. Somebody may have changed the database by hand, a copy may be incomplete, or this is a fault of Carillon; the node's log has more.",
			"该记录已被隔离，其他任务不受影响：相应的执行已置为失败，或相应的任务在记录修复之前不会触发。可能有人手工修改过数据库、数据副本不完整，或是 Carillon 自身的缺陷；详情见节点日志。",
		}.in(l)
	case domain.AlertTest:
		return text{
			"Somebody asked for this message to see whether alerts arrive. Nothing happened.",
			"这是一条用于检查告警能否送达的测试消息，没有发生任何故障。",
		}.in(l)
	default:
		return string(n.Event.Kind)
	}
}

func (n *Notice) executorName() string {
	if n.Executor.Name != "" {
		return n.Executor.Name
	}
	return "#" + n.Executor.ID.String()
}

// MovedOn tells, when the run has come further since the event was written,
// where it stands now; else it is empty.
func (n *Notice) MovedOn(l Language) string {
	if n.Execution == nil {
		return ""
	}
	expected, ok := map[domain.AlertKind]domain.State{
		domain.AlertRunFailed: domain.Failed, domain.AlertRunTimedOut: domain.TimedOut, domain.AlertRunLost: domain.Lost,
	}[n.Event.Kind]
	if !ok || n.Execution.State == expected {
		return ""
	}
	return fmt.Sprintf(text{
		"Meanwhile the run has moved on; it is now: %s.", "此后该执行的状态已变为：%s。",
	}.in(l), StateName(n.Execution.State, l))
}

var stateNames = map[domain.State]text{
	domain.Due: {"due", "待执行"}, domain.Offered: {"offered", "已派发"}, domain.Running: {"running", "执行中"},
	domain.Cancelling: {"cancelling", "取消中"}, domain.RetryWait: {"waiting for its retry", "等待重试"},
	domain.Succeeded: {"succeeded", "成功"}, domain.Failed: {"failed", "失败"}, domain.TimedOut: {"timed out", "超时"},
	domain.Cancelled: {"cancelled", "已取消"}, domain.Lost: {"lost", "结果未知"}, domain.Missed: {"missed", "已错过"},
	domain.Discarded: {"discarded", "已丢弃"}, domain.Excluded: {"excluded by a calendar", "被日历排除"},
}

// StateName returns a state's name for people.
func StateName(s domain.State, l Language) string { return stateNames[s].in(l) }
