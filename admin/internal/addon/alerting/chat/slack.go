package chat

import (
	"net/http"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
)

// slack is an incoming webhook, of Slack or of what takes the same messages. Its
// blocks are plain text, in which no sign has a meaning; a header has at most 150
// characters, a section 3,000, a field 2,000, and a section ten fields.
var slack = product{
	kind: noun.ChannelSlack,
	message: func(n *notify.Notice, c *notify.Content) object {
		text := func(s string, limit int) object {
			return object{"type": "plain_text", "text": notify.Shorten(s, limit), "emoji": false}
		}
		blocks := []object{
			{"type": "header", "text": text(title(n, c), 150)},
			{"type": "section", "text": text(lead(c), 3000)},
		}
		table := facts(c)
		for len(table) > 0 {
			row := table[:min(10, len(table))]
			table = table[len(row):]
			fields := []object{}
			for _, f := range row {
				fields = append(fields, text(f.Label+": "+f.Value, 2000))
			}
			blocks = append(blocks, object{"type": "section", "fields": fields})
		}
		if c.Error != "" {
			blocks = append(blocks, object{"type": "section", "text": text(c.Error, 3000)})
		}
		called := ""
		for _, id := range n.Channel.Mentions {
			called += "<@" + id + "> "
		}
		if n.Channel.MentionAll {
			called += "<!channel>"
		}
		if called != "" {
			blocks = append(blocks, object{"type": "section", "text": object{"type": "mrkdwn", "text": called}})
		}
		if c.Link != "" {
			blocks = append(blocks, object{"type": "actions", "elements": []object{
				{"type": "button", "text": text(c.LinkText, 75), "url": c.Link},
			}})
		}
		// Notifications, and products without blocks, show text.
		return object{"text": slackEscape(title(n, c) + "\n" + notify.Shorten(lead(c), 3000)), "blocks": blocks}
	},
	address: here,
	verdict: func(a post.Answer) error {
		word := strings.TrimSpace(string(a.Body))
		switch {
		case a.Status == http.StatusTooManyRequests:
			return later(refused(a.Status, word), max(throttled/60, a.RetryAfter()))
		case a.Status == http.StatusOK && slackErrors[word]:
			return notify.Permanent(refused(a.Status, word))
		}
		return nil // the status says it, and its text follows
	},
}

var slackErrors = map[string]bool{
	"no_service": true, "no_team": true, "no_text": true, "invalid_payload": true, "invalid_token": true, "invalid_blocks": true, "channel_not_found": true,
	"channel_is_archived": true, "action_prohibited": true, "team_disabled": true, "user_not_found": true,
}

var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
