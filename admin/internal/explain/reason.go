package explain

import "github.com/carillon-sched/carillon/admin/internal/domain"

// Party is who or what kept a run from starting, or ended it.
type Party string

// Parties. A run that succeeded, or that nothing keeps, has none.
const (
	Nobody     Party = ""
	ByHandler  Party = "handler"  // the code of the job's owner
	ByExecutor Party = "executor" // the process that runs it: it died, stopped, stood still, was full or not there
	ByAdmin    Party = "admin"    // no admin node worked, or none could be reached
	ByDatabase Party = "database"
	ByPerson   Party = "person" // who cancelled, paused, deleted
	ByJob      Party = "job"    // what its owners have set: schedule, calendar, blocking strategy, limits, input
)

// reasons says of each stable code whose doing it is, in words that complete
// "…, because".
var reasons = map[domain.Reason]struct {
	by   Party
	text Text
}{
	domain.ReasonMisfire:        {ByAdmin, Text{"when an admin node came to it (none was working, the database was away, or firing was held), its fire time had passed by more than the misfire threshold, and the job's policy is to skip such fires", "管理节点处理到它时（此前没有管理节点在工作、数据库不可用，或触发被暂停），触发时间已超过过期阈值，而任务的过期策略是跳过"}},
	domain.ReasonMisfireWindow:  {ByAdmin, Text{"when an admin node came to it (none was working, the database was away, or firing was held), its fire time had passed longer ago than the window in which the job makes up for missed fires", "管理节点处理到它时（此前没有管理节点在工作、数据库不可用，或触发被暂停），其触发时间已早于任务允许补跑的时间窗口"}},
	domain.ReasonMisfireCap:     {ByAdmin, Text{"more fires had passed while no admin node came to them (none was working, the database was away, or firing was held) than the job makes up for at once", "在没有管理节点处理期间（没有管理节点在工作、数据库不可用，或触发被暂停）错过的触发次数超过了任务一次补跑的上限"}},
	domain.ReasonCoalesced:      {ByAdmin, Text{"no admin node came to it in time (none was working, the database was away, or firing was held), and a later run stands for all fires that had passed", "没有管理节点及时处理它（没有管理节点在工作、数据库不可用，或触发被暂停），由之后的一次运行代替所有已错过的触发"}},
	domain.ReasonCalendar:       {ByJob, Text{"a calendar of the job excludes this instant", "任务的日历排除了该时刻"}},
	domain.ReasonOverlap:        {ByJob, Text{"an earlier run of the job was still going on, and the job discards later ones", "该任务的上一次运行仍在进行，而阻塞策略是丢弃后续运行"}},
	domain.ReasonQueueFull:      {ByJob, Text{"as many runs of the job waited for earlier ones as may (maxWaiting)", "等待该任务之前运行的数量已达上限（maxWaiting）"}},
	domain.ReasonCovered:        {ByJob, Text{"a later run of the job took its place", "被该任务之后的一次运行覆盖"}},
	domain.ReasonNoExecutor:     {ByExecutor, Text{"no instance of the executor could take it before the wait was over", "在等待期限内没有执行器实例能够接收它"}},
	domain.ReasonPaused:         {ByPerson, Text{"the job was paused before it started", "任务在它开始之前被暂停"}},
	domain.ReasonDeleted:        {ByPerson, Text{"the job was deleted before it started", "任务在它开始之前被删除"}},
	domain.ReasonWaitSlot:       {ByJob, Text{"an earlier run of the job was still going on", "该任务之前的运行仍在进行"}},
	domain.ReasonWaitLimit:      {ByJob, Text{"the executor or the tenant was running as many as it may", "执行器或租户的并发数已达上限"}},
	domain.ReasonMaintenance:    {ByPerson, Text{"nothing was to start because of maintenance", "处于维护期间，不启动任何运行"}},
	domain.ReasonWaitInstance:   {ByExecutor, Text{"no instance could take it", "没有执行器实例能够接收"}},
	domain.ReasonOfferExpired:   {ByExecutor, Text{"the instance did not answer the offer in time", "实例未在规定时间内应答"}},
	domain.ReasonOfferRefused:   {ByExecutor, Text{"the instance refused the offer", "实例拒绝了该次派发"}},
	domain.ReasonSessionLost:    {ByExecutor, Text{"the connection to the instance broke before it answered", "实例应答之前连接中断"}},
	domain.ReasonSendFailed:     {ByExecutor, Text{"it was sent as often as the job allows, and no instance took it", "派发次数已达任务上限，没有实例接收"}},
	domain.ReasonLeaseExpired:   {ByExecutor, Text{"its instance went silent (its process or machine died, stood still or was cut off) and its lease ran out", "所在实例失去联系（进程或机器已退出、停顿，或网络中断）且租约到期"}},
	domain.ReasonLeaseLost:      {ByAdmin, Text{"no admin node answered its executor until the lease was over (none was working, or the executor was cut off from all of them), so the executor had to stop the handler", "在租约到期之前没有管理节点应答其执行器（没有管理节点在工作，或执行器与所有管理节点断开），执行器因此停止了处理器"}},
	domain.ReasonStalled:        {ByExecutor, Text{"the process of its instance stood still for longer than its lease (it was suspended or starved), and then had to stop the handler", "所在实例的进程停顿超过了租约期限（被挂起或得不到资源），随后停止了处理器"}},
	domain.ReasonBigOutput:      {ByHandler, Text{"the handler returned an output that is larger than a run may keep", "处理器返回的输出超过了运行可保存的上限"}},
	domain.ReasonRollback:       {ByDatabase, Text{"the database was put back to an earlier state, and the end of the attempt was lost with that", "数据库被还原到较早的状态，该次尝试的结束记录随之丢失"}},
	domain.ReasonProcessDied:    {ByExecutor, Text{"the process of its instance died", "所在实例的进程已退出"}},
	domain.ReasonNotStarted:     {ByExecutor, Text{"its executor gave it back before the handler was called", "执行器在调用处理器之前将其退回"}},
	domain.ReasonStopped:        {ByExecutor, Text{"the process of its instance stopped before the handler was done", "所在实例的进程在处理器完成之前停止"}},
	domain.ReasonKilled:         {ByPerson, Text{"somebody cancelled it", "被人为取消"}},
	domain.ReasonRescheduled:    {ByPerson, Text{"its timer was moved to another time, or replaced, before it started", "它的定时在开始之前被改期或替换"}},
	domain.ReasonTimeout:        {ByHandler, Text{"it ran longer than the job's timeout", "运行时间超过任务的超时设置"}},
	domain.ReasonCancelForced:   {ByHandler, Text{"the handler did not answer the cancel, and the wait for it was over", "处理器未响应取消请求，等待期已过"}},
	domain.ReasonHandlerFailed:  {ByHandler, Text{"the handler returned an error", "处理器返回了错误"}},
	domain.ReasonHandlerPanic:   {ByHandler, Text{"the handler panicked", "处理器发生 panic"}},
	domain.ReasonHandlerCancel:  {ByHandler, Text{"the handler said that it is not to be done any more", "处理器表明不再需要执行"}},
	domain.ReasonSnoozed:        {ByHandler, Text{"the handler asked for it again later", "处理器要求稍后再次运行"}},
	domain.ReasonPermanent:      {ByHandler, Text{"the handler said that trying again is of no use", "处理器表明重试无意义"}},
	domain.ReasonBadInput:       {ByJob, Text{"the input does not fit the handler", "输入参数不符合处理器的要求"}},
	domain.ReasonInstanceGone:   {ByExecutor, Text{"the instance that the shard was for had gone", "该分片所属的实例已消失"}},
	domain.ReasonShards:         {ByHandler, Text{"not all of its shards succeeded", "并非所有分片都成功"}},
	domain.ReasonBeforeHook:     {ByHandler, Text{"the hook before the shards did not succeed", "前置钩子未成功"}},
	domain.ReasonAfterHook:      {ByHandler, Text{"the hook after the shards did not succeed", "后置钩子未成功"}},
	domain.ReasonManyInstances:  {ByExecutor, Text{"more instances serve the handler than a fire may have shards", "提供该处理器的实例数超过单次触发的分片上限"}},
	domain.ReasonSetAside:       {ByDatabase, Text{"its row in the database, or its job's, cannot be read or decided", "执行记录或其任务的记录无法读取或处理"}},
	domain.ReasonUnknownHandler: {ByExecutor, Text{"the instance does not know the handler", "实例上没有该处理器"}},
}

// because returns the reason in words; a code without words stands for itself.
func because(r domain.Reason) Text {
	if known, ok := reasons[r]; ok {
		return known.text
	}
	return Text{string(r), string(r)}
}

var causes = map[domain.Cause]Text{
	domain.CauseSchedule: {"planned by the schedule", "由调度计划产生"},
	domain.CauseMisfire:  {"run late by the misfire policy, because its fire time had passed", "触发时间已过，按过期策略补跑"},
	domain.CauseManual:   {"asked for by hand", "由人工触发"},
	domain.CauseAPI:      {"asked for through the API", "通过 API 触发"},
	domain.CauseRetry:    {"asked for as a repetition of a finished run", "作为已结束运行的重跑而触发"},
	domain.CauseParent:   {"started by another run", "由另一次运行触发"},
	domain.CauseBackfill: {"started by a backfill", "由补数触发"},
	domain.CauseTimer:    {"asked for by a timer that an application set", "由应用设置的定时触发"},
	domain.CauseImport:   {"imported after it had ended", "结束后导入"},
}

func causeText(c domain.Cause) Text {
	if t, ok := causes[c]; ok {
		return t
	}
	return Text{string(c), string(c)}
}

// states names terminal states in Chinese; English takes their codes.
var states = map[domain.State]string{
	domain.Succeeded: "成功", domain.Failed: "失败", domain.TimedOut: "超时", domain.Cancelled: "已取消",
	domain.Lost: "失联", domain.Missed: "错过", domain.Discarded: "丢弃", domain.Excluded: "被排除",
}
