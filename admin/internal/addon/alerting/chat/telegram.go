package chat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
)

// maxTelegram is how many characters a message has, after entities were parsed.
const maxTelegram = 4096

// telegram is a bot, of Telegram or of a Bot API server of one's own.
var telegram = product{
	kind: noun.ChannelTelegram, base: "https://api.telegram.org",
	message: func(n *notify.Notice, c *notify.Content) object {
		left := maxTelegram
		take := func(s string, most int) string {
			s = notify.Shorten(s, max(1, min(most, left)))
			left -= len([]rune(s)) + 2 // and the line ends around it
			return telegramEscape(s)
		}
		var b strings.Builder
		link := ""
		if c.Link != "" {
			link = fmt.Sprintf("\n<a href=\"%s\">%s</a>", telegramEscape(c.Link), take(c.LinkText, 100))
		}
		b.WriteString("<b>" + take(title(n, c), 250) + "</b>\n" + take(lead(c), 3000) + "\n")
		for _, f := range facts(c) {
			if left > 200 {
				b.WriteString("\n" + take(f.Label+": "+f.Value, 300))
			}
		}
		if c.Error != "" && left > 100 {
			b.WriteString("\n\n<pre>" + take(c.Error, left-10) + "</pre>")
		}
		b.WriteString(link)
		out := object{"chat_id": n.Channel.ChatID, "text": b.String(), "parse_mode": "HTML", "link_preview_options": object{"is_disabled": true}}
		if n.Channel.ThreadID != 0 {
			out["message_thread_id"] = n.Channel.ThreadID
		}
		return out
	},
	address: func(n *notify.Notice, base string, _ http.Header, _ object, _ time.Time) string {
		return base + "/bot" + n.Channel.Secrets.Token + "/sendMessage"
	},
	verdict: func(a post.Answer) error {
		var said struct {
			OK          bool   `json:"ok"`
			Code        int64  `json:"error_code"`
			Description string `json:"description"`
			Parameters  struct {
				RetryAfter int64 `json:"retry_after"`
				MigrateTo  int64 `json:"migrate_to_chat_id"`
			} `json:"parameters"`
		}
		err := json.Unmarshal(a.Body, &said)
		switch {
		case err != nil && a.Status/100 == 2:
			return unreadable(a)
		case err != nil || said.OK && a.Status/100 == 2:
			return nil
		}
		err = refused(said.Code, said.Description)
		switch {
		case a.Status == http.StatusTooManyRequests:
			return later(err, max(a.RetryAfter(), time.Duration(min(said.Parameters.RetryAfter, 1<<16))*time.Second))
		case a.Status/100 == 5:
			return later(err, a.RetryAfter())
		case said.Parameters.MigrateTo != 0:
			err = fmt.Errorf("%w; the chat's number is %d now", err, said.Parameters.MigrateTo)
		}
		return notify.Permanent(err)
	},
}

var telegramEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace
