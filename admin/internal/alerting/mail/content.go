package mail

import (
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// content is what both parts of a mail say.
type content struct {
	Lang, Subject, Title, Summary, MovedOn string
	Facts                                  []fact
	Error                                  string
	Link, LinkText, Footer                 string
}

type fact struct{ Label, Value string }

// words are the labels of a mail in one language.
type words struct {
	job, tenant, executor, run, due, started, ended, attempt, instance string

	attemptOf       string // two numbers
	never           string // the handler did not start
	openRun, openJo string
	footer          string
	platformFooter  string
}

var english = words{
	job: "Job", tenant: "Tenant", executor: "Executor", run: "Run", due: "Due", started: "Started", ended: "Ended",
	attempt: "Attempt", instance: "Instance", attemptOf: "%d of %d", never: "not started",
	openRun: "Open the run", openJo: "Open the job",
	footer:         "Sent by Carillon because you own this job or are listed in its alerts.",
	platformFooter: "Sent by Carillon because you are listed as one of its operators.",
}

var chinese = words{
	job: "任务", tenant: "租户", executor: "执行器", run: "执行编号", due: "计划时间", started: "开始时间", ended: "结束时间",
	attempt: "尝试次数", instance: "实例", attemptOf: "第 %d 次，共 %d 次", never: "未开始",
	openRun: "查看本次执行", openJo: "查看任务",
	footer:         "您是该任务的负责人或告警接收人，因此收到 Carillon（编钟）发出的这封邮件。",
	platformFooter: "您是 Carillon（编钟）的运维人员，因此收到这封邮件。",
}

func wordsOf(l alerting.Language) words {
	if l == alerting.Chinese {
		return chinese
	}
	return english
}

func newContent(n *alerting.Notice, language alerting.Language) content {
	w := wordsOf(language)
	c := content{
		Lang: "en", Title: line(n.Title(language), maxSubject), Summary: line(n.Summary(language), 1000),
		MovedOn: n.MovedOn(language), Error: strings.TrimSpace(block(n.ErrorText(), maxError)), Footer: w.footer,
		Link: n.RunURL, LinkText: w.openRun,
	}
	if language == alerting.Chinese {
		c.Lang = "zh-CN"
	}
	if c.Link == "" {
		c.Link, c.LinkText = n.JobURL, w.openJo
	}
	if n.Event.Kind.Platform() {
		c.Footer = w.platformFooter
	}
	c.Subject = shorten("[Carillon] "+c.Title, maxSubject)
	c.Facts = facts(n, w)
	return c
}

func facts(n *alerting.Notice, w words) []fact {
	zone := n.Zone()
	var out []fact
	add := func(label, value string) {
		if value = line(value, 500); value != "" {
			out = append(out, fact{label, value})
		}
	}
	if !n.Event.Kind.Platform() {
		add(w.job, n.JobName())
	}
	add(w.tenant, n.Tenant.Name)
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

// plain is the text part.
func (c content) plain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", c.Title, c.Summary)
	if c.MovedOn != "" {
		fmt.Fprintf(&b, "%s\n", c.MovedOn)
	}
	b.WriteByte('\n')
	for _, f := range c.Facts {
		fmt.Fprintf(&b, "%s: %s\n", f.Label, f.Value)
	}
	if c.Error != "" {
		fmt.Fprintf(&b, "\n    %s\n", strings.ReplaceAll(c.Error, "\n", "\n    "))
	}
	if c.Link != "" {
		fmt.Fprintf(&b, "\n%s: %s\n", c.LinkText, c.Link)
	}
	fmt.Fprintf(&b, "\n-- \n%s\n", c.Footer)
	return b.String()
}
