package notify

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Language selects the words of messages.
type Language string

const (
	English Language = noun.LanguageEnglish
	Chinese Language = noun.LanguageChinese
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

// counted is something that is counted: one of it and several in English, and with its
// measure word in Chinese.
type counted struct{ one, many, zh string }

var (
	events = counted{"event", "events", "次"}
	jobs   = counted{"job", "jobs", "个任务"}
	runs   = counted{"run", "runs", "次"}
	tries  = counted{"attempt", "attempts", "次尝试"}
	times  = counted{"time", "times", "次"}
)

// of is n of them in words.
func (w counted) of(l Language, n int64) string { return w.count(l, n, strconv.FormatInt(n, 10)) }

// count is of with a number that is written otherwise, such as "1000+".
func (w counted) count(l Language, n int64, number string) string {
	switch {
	case l == Chinese:
		return " " + number + " " + w.zh
	case n == 1:
		return number + " " + w.one
	}
	return number + " " + w.many
}

var titles = map[domain.AlertKind]text{
	domain.AlertRunFailed:       {"Failed: %s", "执行失败：%s"},
	domain.AlertRunTimedOut:     {"Timed out: %s", "执行超时：%s"},
	domain.AlertRunLost:         {"Outcome unknown: %s", "执行结果未知：%s"},
	domain.AlertRunMissed:       {"Never started: %s", "未能执行：%s"},
	domain.AlertNoExecutor:      {"No executor online: %s", "没有在线的执行器：%s"},
	domain.AlertTest:            {"Test message: %s", "测试消息：%s"},
	domain.AlertRunLate:         {"Late: %s", "未按时开始：%s"},
	domain.AlertRunLong:         {"Runs for long: %s", "执行时间过长：%s"},
	domain.AlertJobAbsent:       {"No success for long: %s", "长时间没有成功执行：%s"},
	domain.AlertRunsPileUp:      {"Runs pile up: %s", "执行堆积：%s"},
	domain.AlertRunSucceeded:    {"Succeeded: %s", "执行成功：%s"},
	domain.AlertSchedulerBehind: {"The scheduler was behind: %s", "调度滞后：%s"},
	domain.AlertRecovered:       {"Recovered: %s", "已恢复：%s"},
	domain.AlertClockJump:       {"The database's clock leapt forward, firing is held%s", "数据库时钟向前跳变，已暂停触发任务%s"},
	domain.AlertRollback:        {"The database has lost commits, firing is held%s", "数据库丢失了已提交的数据，已暂停触发任务%s"},
	domain.AlertFlapping:        {"Processes of an executor come and go%s", "执行器的进程反复上线又离线%s"},
	domain.AlertInstanceGone:    {"Instances of an executor are gone%s", "执行器的部分实例已离线%s"},
	domain.AlertOverload:        {"More is due than can be sent out%s", "到期任务超出派发能力%s"},
	domain.AlertStalled:         {"Runs do not start beside free slots%s", "有空闲槽位但执行没有开始%s"},
	domain.AlertSetAside:        {"A row in the database cannot be used%s", "数据库中有无法使用的记录%s"},
}

// Title is one line: what happened, to which job.
func (n *Notice) Title(l Language) string {
	t, ok := titles[n.Kind()]
	if !ok {
		t = text{"Alert: %s", "告警：%s"}
	}
	if n.Kind().Platform() {
		return fmt.Sprintf(t.in(l), "")
	}
	if n.Event.Kind == domain.AlertTest && n.Channel != nil {
		return fmt.Sprintf(t.in(l), n.Channel.Name)
	}
	if n.Over() && n.Incident.Kind.Platform() {
		return strings.TrimRight(fmt.Sprintf(t.in(l), ""), " :：")
	}
	return fmt.Sprintf(t.in(l), n.subject(l))
}

// subject is whom it is about.
func (n *Notice) subject(l Language) string {
	switch {
	case !n.Several():
		name := n.JobName()
		if n.Incident != nil && n.Incident.Events > 1 {
			name += fmt.Sprintf(text{" (%s)", "（共%s）"}.in(l), runs.of(l, n.Incident.Events))
		}
		return name
	case n.Incident.Kind == domain.AlertSchedulerBehind:
		return strings.TrimSpace(jobs.count(l, int64(len(n.Incident.Jobs)), n.jobCount()))
	case len(n.Incident.Jobs) == 1:
		return fmt.Sprintf(text{"executor %s", "执行器 %s"}.in(l), n.executorName())
	default:
		return fmt.Sprintf(text{"%s of executor %s", "执行器 %[2]s 的%[1]s"}.in(l), jobs.count(l, int64(len(n.Incident.Jobs)), n.jobCount()), n.executorName())
	}
}

// jobCount is how many jobs an incident is about.
func (n *Notice) jobCount() string {
	count := strconv.Itoa(len(n.Incident.Jobs))
	if len(n.Incident.Jobs) >= noun.MaxIncidentJobs {
		count += "+"
	}
	return count
}

// Summary says in a few sentences what happened and what follows from it.
func (n *Notice) Summary(l Language) string {
	switch {
	case n.Incident == nil:
		return n.eventSummary(l)
	case n.Over():
		return n.overSummary(l)
	case n.Several():
		return n.severalSummary(l)
	}
	out := n.eventSummary(l)
	if n.Incident.Events > 1 {
		out += text{" ", ""}.in(l) + fmt.Sprintf(text{
			"It has happened %s since %s; this is about the last one.", "自 %[2]s 以来已发生%[1]s，以下为最近一次的信息。",
		}.in(l), times.of(l, n.Incident.Events), n.clock(n.Incident.OpenedAt))
	}
	return out
}

func (n *Notice) overSummary(l Language) string {
	i := n.Incident
	var out string
	switch {
	case i.ResolvedBy != "":
		out = fmt.Sprintf(text{"%s has ended it at %s.", "%s 于 %s 将其标记为已解决。"}.in(l), i.ResolvedBy, n.clock(i.ResolvedAt))
	case i.Kind == domain.AlertNoExecutor:
		out = fmt.Sprintf(text{"Instances are online again, since %s at the latest.", "实例已重新上线（不晚于 %s）。"}.in(l), n.clock(i.ResolvedAt))
	case i.Kind == domain.AlertRunsPileUp:
		out = fmt.Sprintf(text{"No run waits any more, since %s at the latest.", "已没有等待的执行（不晚于 %s）。"}.in(l), n.clock(i.ResolvedAt))
	default:
		out = fmt.Sprintf(text{"A run has succeeded since, before %s.", "此后已有执行成功（不晚于 %s）。"}.in(l), n.clock(i.ResolvedAt))
	}
	return out + text{" ", ""}.in(l) + fmt.Sprintf(text{
		"It had begun at %s: %s, %s in all.", "该事件始于 %s：%s，共%s。",
	}.in(l), n.clock(i.OpenedAt), n.what(l), events.of(l, i.Events))
}

func (n *Notice) severalSummary(l Language) string {
	i := n.Incident
	var out string
	switch i.Kind {
	case domain.AlertNoExecutor:
		out = fmt.Sprintf(text{
			"Jobs are due, but no instance of executor %s is online to run them.", "有任务已到触发时间，但执行器 %s 没有任何实例在线。",
		}.in(l), n.executorName())
	case domain.AlertSchedulerBehind:
		out = text{
			"Runs were planned too late or lost their lease, because for a while no admin node worked, or the database was away. The handlers are not the cause.",
			"由于一段时间内没有管理节点工作或数据库不可用，部分执行未能按时计划或失去租约，与处理器无关。",
		}.in(l)
	case domain.AlertRunSucceeded:
		out = fmt.Sprintf(text{"Runs of several jobs of executor %s have succeeded.", "执行器 %s 的多个任务执行成功。"}.in(l), n.executorName())
	default:
		out = fmt.Sprintf(text{
			"Many jobs of executor %s are in the same trouble: %s.", "执行器 %s 的多个任务出现同样的问题：%s。",
		}.in(l), n.executorName(), n.what(l))
	}
	names, more := i.Names()
	list := strings.Join(names, text{", ", "、"}.in(l))
	if more > 0 {
		list += fmt.Sprintf(text{" and %d more", " 等，另有 %d 个"}.in(l), more)
	}
	return out + text{" ", ""}.in(l) + fmt.Sprintf(text{
		"%s of %s since %s: %s.", "自 %[3]s 以来共%[1]s，涉及%[2]s：%[4]s。",
	}.in(l), events.of(l, i.Events), jobs.count(l, int64(len(i.Jobs)), n.jobCount()), n.clock(i.OpenedAt), list)
}

// what is the incident's kind in words.
func (n *Notice) what(l Language) string {
	words, ok := kindWords[n.Incident.Kind]
	if !ok {
		return string(n.Incident.Kind)
	}
	return words.in(l)
}

var kindWords = map[domain.AlertKind]text{
	domain.AlertRunFailed: {"runs failed", "执行失败"}, domain.AlertRunTimedOut: {"runs timed out", "执行超时"},
	domain.AlertRunLost: {"runs whose outcome is unknown", "执行结果未知"}, domain.AlertRunMissed: {"runs never started", "未能执行"},
	domain.AlertNoExecutor: {"no instance was online", "没有在线的实例"}, domain.AlertRunLate: {"runs were late", "未按时开始"},
	domain.AlertRunLong: {"runs took too long", "执行时间过长"}, domain.AlertJobAbsent: {"no run succeeded", "没有成功的执行"},
	domain.AlertRunsPileUp:   {"runs take longer than the interval", "执行时间超过触发间隔"},
	domain.AlertRunSucceeded: {"runs succeeded", "执行成功"}, domain.AlertSchedulerBehind: {"the scheduler was behind", "调度滞后"},
}

func (n *Notice) clock(t time.Time) string {
	zone := n.Zone()
	return t.In(zone).Format("2006-01-02 15:04:05") + " " + zone.String()
}

// eventSummary is the summary of a single event.
func (n *Notice) eventSummary(l Language) string {
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
				"The run failed for good, after %s. It will not be tried again.",
				"本次执行在%s后最终失败，不会再重试。",
			}.in(l), tries.of(l, int64(attempts)))
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
				"%s of the job never started. What follows is about the last one of them.",
				"该任务有%s执行未能开始，以下为其中最后一次的信息。",
			}.in(l), runs.of(l, int64(n.Event.Missed)))
		}
		return text{"The run never started.", "本次执行未能开始。"}.in(l)
	case domain.AlertRunLate:
		return text{"The run is due and has not started.", "本次执行已到计划时间，但尚未开始。"}.in(l) + n.waitsFor(l)
	case domain.AlertRunLong:
		return text{"The run has been running for longer than it should.", "本次执行的运行时间超出预期。"}.in(l)
	case domain.AlertRunsPileUp:
		return pileText(n.Event.Detail).in(l)
	case domain.AlertJobAbsent:
		return text{"No run of the job has succeeded for longer than its rule allows.", "该任务没有成功执行的时间已超过规则允许的时长。"}.in(l)
	case domain.AlertRunSucceeded:
		return text{"The run has succeeded.", "本次执行成功。"}.in(l)
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
	case domain.AlertInstanceGone:
		return text{
			"Their leases ran out, and no process of the same name came back within a minute. The other instances do the work. Look at the machines; what ran there is lost or repeated, as its jobs say.",
			"这些实例的租约已过期，一分钟内没有同名进程重新接入，任务由其余实例执行。请检查相应的机器；其上运行中的执行按任务设置判定为丢失或重试。",
		}.in(l)
	case domain.AlertOverload:
		return text{
			"Runs start late: those of tenants that fill the memory are planned later, and none is lost. See whose executors are full or away, then the load of the database and the nodes, and which tenant's jobs have become so many.",
			"执行将延迟开始：占满内存的租户的任务会推迟计划，不会丢失。请先检查哪些执行器已满载或离线，再检查数据库与各节点的负载，以及哪个租户的任务激增。",
		}.in(l)
	case domain.AlertStalled:
		return text{
			"An instance has room, and a run that it may take waits. That is a fault of Carillon. Restart the node that the message names: it reads what waits from the database. Please report it with the output of carillon run explain.",
			"某个实例有空闲槽位，而它可以接收的执行仍在等待。这是 Carillon 的缺陷。请重启消息中的节点，它会从数据库重新读取等待的执行。请附上 carillon run explain 的输出并报告此问题。",
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

// pileText says how many runs wait, as the detail of an event has it.
func pileText(detail string) text {
	waiting, full, _ := domain.ReadPileMessage(detail)
	out := text{
		fmt.Sprintf("Runs take longer than the interval. %d wait.", waiting), fmt.Sprintf("执行时间超过触发间隔，有 %d 次执行在等待。", waiting),
	}
	if full {
		out = text{
			fmt.Sprintf("%d runs wait for earlier ones, as many as may (maxWaiting). Further fires are discarded.", waiting),
			fmt.Sprintf("有 %d 次执行在等待之前的执行，已达任务上限（maxWaiting），后续触发将被丢弃。", waiting),
		}
	}
	out.en += " Let the job fire less often, make its handler faster, or choose another blocking strategy."
	out.zh += "请降低触发频率、优化处理器，或更换阻塞策略。"
	return out
}

// waitReasons says what a run that has not started waits for.
var waitReasons = map[domain.Reason]text{
	domain.ReasonWaitSlot:     {"It waits for an earlier run of its job to end.", "正在等待该任务的上一次执行结束。"},
	domain.ReasonWaitLimit:    {"It waits because its executor or its tenant runs as many as it may.", "执行器或租户的并发数已达上限，正在排队。"},
	domain.ReasonWaitInstance: {"It waits for an instance: none is online, or all are full.", "正在等待实例：没有在线的实例，或所有实例都已满载。"},
	domain.ReasonMaintenance:  {"It waits for the end of the maintenance.", "正在等待维护结束。"},
}

// waitsFor is empty when it has moved on, or nothing keeps it.
func (n *Notice) waitsFor(l Language) string {
	if n.Execution == nil || n.Execution.State != domain.Due {
		return ""
	}
	if why, ok := waitReasons[n.Execution.Reason]; ok {
		return text{" ", ""}.in(l) + why.in(l)
	}
	return ""
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
	domain.Discarded: {"discarded", "已丢弃"}, domain.Excluded: {"excluded", "被排除"},
}

// StateName returns a state's name for people.
func StateName(s domain.State, l Language) string { return stateNames[s].in(l) }
