package chat

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
)

// teams is a workflow that posts a card when it receives a webhook request. A
// message has at most 28 KB. Text runs, unlike text blocks, give no sign a meaning.
var teams = product{
	kind: noun.ChannelTeams,
	message: func(n *notify.Notice, c *notify.Content) object {
		run := func(text, kind string) object {
			r := object{"type": "TextRun", "text": text}
			switch kind {
			case "title":
				r["size"], r["weight"], r["color"] = "Large", "Bolder", teamsColor(n)
			case "label":
				r["weight"] = "Bolder"
			case "error":
				r["fontType"] = "Monospace"
			}
			return r
		}
		block := func(runs ...object) object { return object{"type": "RichTextBlock", "inlines": runs} }
		body := []object{block(run(cut(title(n, c), 600), "title")), block(run(cut(lead(c), 8<<10), ""))}
		for _, f := range facts(c) {
			body = append(body, block(run(f.Label+": ", "label"), run(cut(f.Value, 300), "")))
		}
		if c.Error != "" {
			body = append(body, block(run(cut(c.Error, 4<<10), "error")))
		}
		card := object{
			"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body,
			"msteams": object{"width": "Full"},
		}
		if c.Link != "" {
			card["actions"] = []object{{"type": "Action.OpenUrl", "title": c.LinkText, "url": c.Link}}
		}
		return object{"type": "message", "attachments": []object{
			{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": card},
		}}
	},
	address: here,
	verdict: func(a post.Answer) error {
		// The connectors from before workflows say in a 200 what failed behind them.
		const failed = "Webhook message delivery failed"
		if a.Status != http.StatusOK || !strings.Contains(string(a.Body), failed) {
			return nil
		}
		err := fmt.Errorf("the receiver answered %d%s", a.Status, a.Excerpt())
		if strings.Contains(string(a.Body), "429") {
			return later(err, throttled)
		}
		return notify.Permanent(err)
	},
}

func teamsColor(n *notify.Notice) string {
	if n.Phase == notify.PhaseResolve {
		return "Good"
	}
	switch n.Severity() {
	case notify.SeverityInfo:
		return "Accent"
	case notify.SeverityWarning:
		return "Warning"
	}
	return "Attention"
}
