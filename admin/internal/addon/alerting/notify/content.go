package notify

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const (
	// maxTitle and maxError bound what users' texts may add, in characters.
	maxTitle   = 200
	maxSummary = 1000
	maxFact    = 500
	maxError   = 4000
	maxLog     = 8000
)

// Content is what people read of a notice, in one language.
type Content struct {
	Language                Language
	Title, Summary, MovedOn string
	Facts                   []Fact
	Error                   string
	// Log are the last lines of the run's log, only in mails. LogText is their heading.
	Log, LogText   string
	Link, LinkText string
	// Text is what a channel's template makes of it, instead of all but the title;
	// empty: there is none.
	Text string
}

// Fact is a line of a table.
type Fact struct{ Label, Value string }

// words are the labels of a message in one language.
type words struct {
	job, tenant, executor, run, due, started, ended, attempt, instance, runbook string

	attemptOf       string // two numbers
	never           string // the handler did not start
	openRun, openJo string
	lastLines       string
	severity        string
	severities      map[noun.Severity]string
}

var english = words{
	job: "Job", tenant: "Tenant", executor: "Executor", run: "Run", due: "Due", started: "Started", ended: "Ended",
	attempt: "Attempt", instance: "Instance", runbook: "Runbook", attemptOf: "%d of %d", never: "not started",
	openRun: "Open the run", openJo: "Open the job", lastLines: "Last lines of the log",
	severity: "Severity", severities: map[noun.Severity]string{noun.SeverityInfo: "info", noun.SeverityWarning: "warning", noun.SeverityCritical: "critical"},
}

var chinese = words{
	job: "任务", tenant: "租户", executor: "执行器", run: "执行编号", due: "计划时间", started: "开始时间", ended: "结束时间",
	attempt: "尝试次数", instance: "实例", runbook: "应急手册", attemptOf: "第 %d 次，共 %d 次", never: "未开始",
	openRun: "查看本次执行", openJo: "查看任务", lastLines: "日志的最后几行",
	severity: "级别", severities: map[noun.Severity]string{noun.SeverityInfo: "提示", noun.SeverityWarning: "警告", noun.SeverityCritical: "严重"},
}

func wordsOf(l Language) words {
	if l == Chinese {
		return chinese
	}
	return english
}

// standard is the content without any template.
func (n *Notice) standard(language Language) Content {
	w := wordsOf(language)
	c := Content{
		Language: language, Title: Line(n.Title(language), maxTitle), Summary: Line(n.Summary(language), maxSummary),
		MovedOn: n.MovedOn(language), Error: strings.TrimSpace(Block(n.ErrorText(), maxError)), Link: n.RunURL, LinkText: w.openRun,
	}
	if len(n.Log) > 0 {
		c.Log, c.LogText = strings.TrimSpace(Block(strings.Join(n.Log, "\n"), maxLog)), w.lastLines
	}
	if c.Link == "" {
		c.Link, c.LinkText = n.JobURL, w.openJo
	}
	if c.Link == "" {
		c.LinkText = ""
	}
	if c.Facts = facts(n, w); n.RunbookURL != "" {
		c.Facts = append(c.Facts, Fact{w.runbook, Line(n.RunbookURL, maxFact)})
	}
	return c
}

func facts(n *Notice, w words) []Fact {
	zone := n.Zone()
	var out []Fact
	add := func(label, value string) {
		if value = Line(value, maxFact); value != "" {
			out = append(out, Fact{label, value})
		}
	}
	if n.JobID() != 0 && !n.Several() {
		add(w.job, n.JobName())
	}
	add(w.tenant, n.Tenant.Name)
	if n.Incident != nil && !n.Incident.Kind.Platform() {
		add(w.severity, w.severities[cmp.Or(n.Incident.Severity, noun.SeverityWarning)])
	}
	executor := n.Executor.Name
	if handler := n.Job.Spec.Handler; handler != "" && executor != "" {
		executor += " / " + handler
	}
	add(w.executor, executor)
	e := n.Execution
	if e == nil {
		if n.Event.Kind == domain.AlertNoExecutor || n.Event.Kind.Platform() {
			add(w.due, instant(n.Event.CreatedAt, zone))
		}
		return out
	}
	add(w.run, e.ID.String())
	add(w.due, instant(e.FireAt, zone))
	if e.StartedAt.IsZero() {
		add(w.started, w.never)
	} else {
		add(w.started, instant(e.StartedAt, zone))
	}
	add(w.ended, instant(e.FinishedAt, zone))
	if e.Attempt > 0 {
		add(w.attempt, fmt.Sprintf(w.attemptOf, e.Attempt, max(e.MaxAttempts, e.Attempt)))
	}
	add(w.instance, n.Instance)
	return out
}

func instant(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format("2006-01-02 15:04:05.000 -07:00") + " (" + zone.String() + ")"
}

// Plain is the content as text, without the title.
func (c *Content) Plain() string {
	if c.Text != "" {
		return c.Text
	}
	var b strings.Builder
	if c.Error != "" {
		fmt.Fprintf(&b, "    %s\n\n", indented(c.Error))
	}
	b.WriteString(c.Summary + "\n")
	if c.MovedOn != "" {
		b.WriteString(c.MovedOn + "\n")
	}
	b.WriteByte('\n')
	for _, f := range c.Facts {
		fmt.Fprintf(&b, "%s: %s\n", f.Label, f.Value)
	}
	if c.Log != "" {
		fmt.Fprintf(&b, "\n%s:\n\n    %s\n", c.LogText, indented(c.Log))
	}
	if c.Link != "" {
		fmt.Fprintf(&b, "\n%s: %s\n", c.LinkText, c.Link)
	}
	return b.String()
}

func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }

// Line makes users' text fit for a header or a table cell: one line, no
// control characters, at most limit characters.
func Line(s string, limit int) string {
	return Shorten(strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029'
	}), " "), limit)
}

// Block is like Line but keeps line breaks and tabs.
func Block(s string, limit int) string {
	return Shorten(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�")), limit)
}

// Shorten cuts a text to so many characters, with a mark at its end.
func Shorten(s string, limit int) string {
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return s
}
