package chat

import (
	"net/http"
	"net/url"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
)

// opsgenie is an integration of the alert API, of Opsgenie or of Jira Service
// Management. A message has at most 130 characters, a description 15,000, details
// 8,000 in all.
var opsgenie = product{
	kind: noun.ChannelOpsgenie, base: "https://api.opsgenie.com",
	message: func(n *notify.Notice, c *notify.Content) object {
		if n.Phase != notify.PhaseTrigger && n.Phase != "" {
			return object{"source": "Carillon", "note": notify.Shorten(c.Title, 1000)}
		}
		return object{
			"message": notify.Shorten(c.Title, 130), "alias": n.Group, "description": notify.Shorten(c.Plain(), 15000), "source": "Carillon",
			"entity": notify.Shorten(component(n), 512), "priority": opsgeniePriority(n), "tags": []string{"carillon", string(n.Kind())},
			"details": details(n, c, 6000),
		}
	},
	address: func(n *notify.Notice, base string, header http.Header, _ object, _ time.Time) string {
		header.Set("Authorization", "GenieKey "+n.Channel.Secrets.Token)
		switch n.Phase {
		case notify.PhaseResolve:
			return base + "/v2/alerts/" + url.PathEscape(n.Group) + "/close?identifierType=alias"
		case notify.PhaseAcknowledge:
			return base + "/v2/alerts/" + url.PathEscape(n.Group) + "/acknowledge?identifierType=alias"
		}
		return base + "/v2/alerts"
	},
	verdict: func(a post.Answer) error {
		if a.Status == http.StatusTooManyRequests {
			return later(refused(a.Status, string(a.Body)), max(throttled, a.RetryAfter()))
		}
		return nil
	},
}

func opsgeniePriority(n *notify.Notice) string {
	switch n.Severity() {
	case notify.SeverityCritical:
		return "P1"
	case notify.SeverityError:
		return "P2"
	case notify.SeverityWarning:
		return "P3"
	}
	return "P5"
}
