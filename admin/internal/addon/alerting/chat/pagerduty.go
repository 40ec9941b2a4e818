package chat

import (
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
)

// pagerDuty is an integration of Events API v2. A summary has at most 1,024
// characters, an event 512 KB. What is no trouble is a change event, which opens no
// incident that somebody would have to close.
var pagerDuty = product{
	kind: noun.ChannelPagerDuty, base: "https://events.pagerduty.com",
	message: func(n *notify.Notice, c *notify.Content) object {
		if n.Change() {
			event := object{"payload": object{
				"summary": notify.Shorten(c.Title, 1024), "source": source(n), "timestamp": n.Event.CreatedAt.UTC().Format(time.RFC3339Nano), "custom_details": details(n, c, 16<<10),
			}}
			if c.Link != "" {
				event["links"] = []object{{"href": c.Link, "text": c.LinkText}}
			}
			return event
		}
		phase := n.Phase
		if phase == "" {
			phase = notify.PhaseTrigger
		}
		event := object{"event_action": string(phase), "dedup_key": n.Group, "client": "Carillon"}
		if phase != notify.PhaseTrigger {
			return event
		}
		if c.Link != "" {
			event["client_url"] = c.Link
			event["links"] = []object{{"href": c.Link, "text": c.LinkText}}
		}
		event["payload"] = object{
			"summary": notify.Shorten(c.Title, 1024), "source": source(n), "severity": string(n.Severity()), "class": string(n.Kind()),
			"component": component(n), "group": n.Executor.Name, "timestamp": n.Event.CreatedAt.UTC().Format(time.RFC3339Nano), "custom_details": details(n, c, 16<<10),
		}
		return event
	},
	address: func(n *notify.Notice, base string, _ http.Header, body object, _ time.Time) string {
		body["routing_key"] = n.Channel.Secrets.Token
		if n.Change() {
			return base + "/v2/change/enqueue"
		}
		return base + "/v2/enqueue"
	},
	verdict: func(a post.Answer) error {
		if a.Status == http.StatusTooManyRequests {
			return later(refused(a.Status, string(a.Body)), max(throttled, a.RetryAfter()))
		}
		return nil
	},
}

// source is what is affected.
func source(n *notify.Notice) string {
	parts := []string{}
	for _, s := range []string{n.Tenant.Name, n.Executor.Name, n.Instance} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return "carillon"
	}
	return strings.Join(parts, "/")
}

// component is the job, or the executor where several jobs are in trouble.
func component(n *notify.Notice) string {
	if n.Several() {
		return n.Executor.Name
	}
	return n.JobName()
}

// details are texts by their names, of at most so many bytes in all.
func details(n *notify.Notice, c *notify.Content, limit int) map[string]string {
	out := map[string]string{"kind": string(n.Kind())}
	add := func(name, text string) {
		if text = cut(text, max(0, limit)); text != "" && limit > len(name) {
			out[name] = text
			limit -= len(name) + len(text)
		}
	}
	if c.Text != "" {
		add("text", c.Text)
	} else {
		add("summary", lead(c))
	}
	for _, f := range facts(c) {
		add(f.Label, f.Value)
	}
	add("error", c.Error)
	return out
}
