package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// declaredReasons reads the codes from where they are declared.
func declaredReasons(t *testing.T) (out []domain.Reason) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../domain/execution.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			out = append(out, domain.Reason(code))
		}
		return true
	})
	require.Greater(t, len(out), 35)
	return out
}

// blamed says of each code whose doing it is, and a word of each sentence that
// names that party.
var blamed = map[domain.Reason]struct {
	by     Party
	en, zh string
}{
	domain.ReasonMisfire:        {ByAdmin, "none was working", "没有管理节点"},
	domain.ReasonMisfireWindow:  {ByAdmin, "none was working", "没有管理节点"},
	domain.ReasonMisfireCap:     {ByAdmin, "no admin node", "没有管理节点"},
	domain.ReasonCoalesced:      {ByAdmin, "no admin node", "没有管理节点"},
	domain.ReasonCalendar:       {ByJob, "calendar of the job", "任务的日历"},
	domain.ReasonOverlap:        {ByJob, "the job discards", "阻塞策略"},
	domain.ReasonQueueFull:      {ByJob, "runs of the job waited", "已达上限"},
	domain.ReasonCovered:        {ByJob, "later run of the job", "该任务之后"},
	domain.ReasonNoExecutor:     {ByExecutor, "instance of the executor", "执行器实例"},
	domain.ReasonPaused:         {ByPerson, "paused", "暂停"},
	domain.ReasonDeleted:        {ByPerson, "deleted", "删除"},
	domain.ReasonWaitSlot:       {ByJob, "earlier run of the job", "该任务之前"},
	domain.ReasonWaitLimit:      {ByJob, "as many as it may", "上限"},
	domain.ReasonWaitInstance:   {ByExecutor, "instance", "实例"},
	domain.ReasonOfferExpired:   {ByExecutor, "the instance", "实例"},
	domain.ReasonOfferRefused:   {ByExecutor, "the instance", "实例"},
	domain.ReasonSessionLost:    {ByExecutor, "connection to the instance", "连接"},
	domain.ReasonSendFailed:     {ByExecutor, "no instance took it", "没有实例"},
	domain.ReasonLeaseExpired:   {ByExecutor, "its instance went silent", "实例失去联系"},
	domain.ReasonProcessDied:    {ByExecutor, "process of its instance died", "进程已退出"},
	domain.ReasonNotStarted:     {ByExecutor, "its executor", "执行器"},
	domain.ReasonStopped:        {ByExecutor, "process of its instance stopped", "进程"},
	domain.ReasonLeaseLost:      {ByAdmin, "no admin node answered", "没有管理节点应答"},
	domain.ReasonStalled:        {ByExecutor, "process of its instance stood still", "进程停顿"},
	domain.ReasonRollback:       {ByDatabase, "the database", "数据库"},
	domain.ReasonKilled:         {ByPerson, "somebody", "人为"},
	domain.ReasonRescheduled:    {ByPerson, "its timer", "定时"},
	domain.ReasonTimeout:        {ByHandler, "ran longer", "运行时间"},
	domain.ReasonCancelForced:   {ByHandler, "the handler", "处理器"},
	domain.ReasonHandlerFailed:  {ByHandler, "the handler returned an error", "处理器返回了错误"},
	domain.ReasonHandlerCancel:  {ByHandler, "the handler", "处理器"},
	domain.ReasonSnoozed:        {ByHandler, "the handler", "处理器"},
	domain.ReasonHandlerPanic:   {ByHandler, "the handler panicked", "处理器"},
	domain.ReasonPermanent:      {ByHandler, "the handler", "处理器"},
	domain.ReasonBadInput:       {ByJob, "the input", "输入"},
	domain.ReasonBigOutput:      {ByHandler, "the handler returned", "处理器"},
	domain.ReasonUnknownHandler: {ByExecutor, "the instance", "实例"},
	domain.ReasonInstanceGone:   {ByExecutor, "the instance", "实例"},
	domain.ReasonShards:         {ByHandler, "shards", "分片"},
	domain.ReasonBeforeHook:     {ByHandler, "hook", "钩子"},
	domain.ReasonAfterHook:      {ByHandler, "hook", "钩子"},
	domain.ReasonManyInstances:  {ByExecutor, "more instances", "实例数"},
	domain.ReasonMaintenance:    {ByPerson, "maintenance", "维护"},
	domain.ReasonSetAside:       {ByDatabase, "in the database", "记录"},
}

func han(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// TestEveryReasonNamesItsParty: a code without party or words, or one that is
// forgotten here, fails.
func TestEveryReasonNamesItsParty(t *testing.T) {
	codes := declaredReasons(t)
	require.Len(t, reasons, len(codes))
	for _, code := range codes {
		want, ok := blamed[code]
		require.True(t, ok, code)
		got := reasons[code]
		require.Equal(t, want.by, got.by, code)
		require.Regexp(t, want.en, got.text.En, code)
		require.Contains(t, got.text.Zh, want.zh, code)
		require.False(t, han(got.text.En), code)
		if got.by != ByHandler {
			require.NotContains(t, got.text.En, "the handler returned", code)
			require.NotContains(t, got.text.Zh, "处理器返回", code)
		}
	}
}

// TestTheRowNamesMore: what a code alone would blame on somebody else.
func TestTheRowNamesMore(t *testing.T) {
	for name, c := range map[string]struct {
		run    Run
		by     Party
		en, zh string
	}{
		"stopped since no admin answered": {
			Run{Execution: domain.Execution{State: domain.Failed, Reason: domain.ReasonLeaseLost, Attempt: 1}}, ByAdmin,
			"It ended as failed after one attempt, because no admin node answered its executor until the lease was over (none was working, or the executor was cut off from all of them), so the executor had to stop the handler.",
			"经过1 次尝试后以“失败”结束：在租约到期之前没有管理节点应答其执行器（没有管理节点在工作，或执行器与所有管理节点断开），执行器因此停止了处理器。",
		},
		"the wait was over, and no node had looked": {
			Run{Execution: domain.Execution{State: domain.Missed, Reason: domain.ReasonMisfire, Cause: domain.CauseManual}}, ByAdmin,
			"It did not run, because no admin node tried to send it before its wait was over: none was working, or the database was away.",
			"未运行：在等待期限内没有管理节点尝试派发：没有管理节点在工作，或数据库不可用。",
		},
		"the wait was over, and it was ended in time": {
			Run{Execution: domain.Execution{State: domain.Missed, Reason: domain.ReasonNoExecutor, ExpireAt: at(60_000), FinishedAt: at(61_000)}}, ByExecutor,
			"It did not run, because no instance of the executor could take it before the wait was over.",
			"未运行：在等待期限内没有执行器实例能够接收它。",
		},
		"the wait was over, and no instance was there": {
			Run{Execution: domain.Execution{State: domain.Missed, Reason: domain.ReasonNoExecutor, Delays: []domain.Delay{{Reason: domain.ReasonWaitInstance}}}}, ByExecutor,
			"It did not run, because no instance of the executor could take it before the wait was over.",
			"未运行：在等待期限内没有执行器实例能够接收它。",
		},
		"cancelled by a user": {
			Run{Execution: domain.Execution{State: domain.Cancelled, Reason: domain.ReasonKilled, Attempt: 1, Message: "cancelled by anna: wrong month"}}, ByPerson,
			"It was stopped, because anna cancelled it: wrong month.", "被停止：被 anna 取消：wrong month。",
		},
		"cancelled by its caller": {
			Run{Execution: domain.Execution{State: domain.Cancelled, Reason: domain.ReasonKilled, Message: "cancelled by its caller key:shop"}}, ByPerson,
			"It did not run, because its caller key:shop cancelled it.", "未运行：被其调用方 key:shop 取消。",
		},
		"paused": {
			Run{Execution: domain.Execution{State: domain.Missed, Reason: domain.ReasonPaused}, Pause: domain.Pause{By: "anna", Note: "stock-taking"}}, ByPerson,
			"It did not run, because anna paused the job before it started (stock-taking).", "未运行：任务在它开始之前被 anna 暂停（stock-taking）。",
		},
		"a wait, with its slots": {
			Run{Execution: domain.Execution{State: domain.Due, Reason: domain.ReasonWaitInstance, Message: "every instance that serves the handler is full (64 of 64 slots are taken)"}}, ByExecutor,
			"It is due and waits, because no instance could take it: every instance that serves the handler is full (64 of 64 slots are taken).",
			"已到触发时间，正在等待：没有执行器实例能够接收：提供该处理器的实例都已满（已用槽位 64/64）。",
		},
		"all is well": {
			Run{Execution: domain.Execution{State: domain.Succeeded, Attempt: 1, PlannedAt: at(-2000), OfferedAt: at(1), StartedAt: at(2)}}, Nobody,
			"It ran and succeeded; it started on time.", "运行成功，准时开始。",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.run.Execution.FireAt, c.run.Spec, c.run.Now = fire, spec, at(1000)
			got := c.run.Explain()
			require.Equal(t, c.by, got.Party)
			require.Equal(t, c.en, got.Summary.En)
			require.Equal(t, c.zh, got.Summary.Zh)
		})
	}
}

// TestMessagesOfAdminsAreToldInChinese reads what the dispatcher writes out of
// its source, so that a message that is added there is missed here.
func TestMessagesOfAdminsAreToldInChinese(t *testing.T) {
	raw, err := os.ReadFile("../dispatch/choose.go")
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "choose.go", raw, 0)
	require.NoError(t, err)
	var known strings.Builder
	for _, p := range append(phrases, slotsTaken) {
		known.WriteString(p.en + "\n")
		require.Equal(t, strings.Count(p.en, "%"), strings.Count(p.zh, "%"), p.en)
	}
	found := 0
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != "whyWait" && f.Name.Name != "slotsTaken" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			for _, part := range regexp.MustCompile("%[ds]").Split(text, -1) {
				require.Contains(t, known.String(), strings.TrimSpace(part))
				found++
			}
			return true
		})
	}
	require.Greater(t, found, 15)

	for message, zh := range map[string]string{
		"no connected instance that serves the handler has the labels zone=a, gpu":                                        "在线且提供该处理器的实例都没有标签 zone=a, gpu",
		"a run of the handler takes 3 slots, and no instance that it may go to has so many free (2 of 4 slots are taken)": "该处理器的一次运行占用 3 个槽位，可用的实例都没有这么多空闲槽位（已用槽位 2/4）",
		"the one instance that the routing strategy first takes is full (4 of 4 slots are taken)":                         "路由策略 first 选择的那个实例已满（已用槽位 4/4）",
		"every instance that could take it is full (4 of 4 slots are taken), and 2 cannot write their journals":           "可以接收它的实例都已满（已用槽位 4/4），另有 2 个无法写入 journal",
		"every instance that serves the handler and has the labels gpu is full":                                           "提供该处理器且带有标签 gpu 的实例都已满",
		"every instance that serves the handler was full a moment ago (3 of 4 slots are taken)":                           "刚才提供该处理器的实例都已满（已用槽位 3/4）",
		"busy: words of an instance": "busy: words of an instance",
	} {
		require.Equal(t, Text{message, zh}, told(message))
	}
}
