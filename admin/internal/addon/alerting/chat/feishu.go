package chat

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
)

// feishu is a group's custom bot, of Feishu or Lark. A request has at most 20 KB.
var feishu = product{
	kind: noun.ChannelFeishu,
	message: func(n *notify.Notice, c *notify.Content) object {
		text := func(s string) object { return object{"tag": "plain_text", "content": s} }
		elements := []object{{"tag": "div", "text": text(cut(lead(c), 6<<10))}}
		fields := []object{}
		for _, f := range facts(c) {
			fields = append(fields, object{"is_short": false, "text": text(f.Label + ": " + cut(f.Value, 300))})
		}
		if len(fields) > 0 {
			elements = append(elements, object{"tag": "div", "fields": fields})
		}
		if c.Error != "" {
			elements = append(elements, object{"tag": "hr"}, object{"tag": "div", "text": text(cut(c.Error, 4<<10))})
		}
		// Ids are checked when the channel is saved: they hold no sign that ends one.
		called := ""
		for _, id := range n.Channel.Mentions {
			called += "<at id=" + id + "></at> "
		}
		if n.Channel.MentionAll {
			called += "<at id=all></at>"
		}
		if called != "" {
			elements = append(elements, object{"tag": "div", "text": object{"tag": "lark_md", "content": called}})
		}
		if c.Link != "" {
			elements = append(elements, object{"tag": "action", "actions": []object{
				{"tag": "button", "type": "default", "text": text(c.LinkText), "url": c.Link},
			}})
		}
		return object{"msg_type": "interactive", "card": object{
			"config":   object{"wide_screen_mode": true},
			"header":   object{"title": text(cut(title(n, c), 600)), "template": feishuColor(n)},
			"elements": elements,
		}}
	},
	address: func(n *notify.Notice, base string, _ http.Header, body object, now time.Time) string {
		if secret := n.Channel.Secrets.Secret; secret != "" {
			at := strconv.FormatInt(now.Unix(), 10)
			body["timestamp"], body["sign"] = at, feishuSign(secret, at)
		}
		return base
	},
	verdict: func(a post.Answer) error {
		// Its gateway refuses with a code beside a status that is none of 2xx.
		var said struct {
			Code    *int64 `json:"code"`
			Message string `json:"msg"`
		}
		err := json.Unmarshal(a.Body, &said)
		switch {
		case a.Status/100 != 2 && (err != nil || said.Code == nil):
			return nil
		case err != nil || said.Code == nil:
			return unreadable(a)
		case *said.Code == 0:
			return nil
		case *said.Code == 11232, *said.Code == 99991400: // too many messages
			return later(refused(*said.Code, said.Message), max(throttled, a.RetryAfter()))
		case a.Status/100 == 5:
			return later(refused(*said.Code, said.Message), a.RetryAfter())
		}
		return notify.Permanent(refused(*said.Code, said.Message))
	},
}

// feishuSign signs the time in seconds: the key is time and secret, the text is empty.
func feishuSign(secret, at string) string {
	return base64.StdEncoding.EncodeToString(hmac.New(sha256.New, []byte(at+"\n"+secret)).Sum(nil))
}

func feishuColor(n *notify.Notice) string {
	if n.Phase == notify.PhaseResolve {
		return "green"
	}
	switch n.Severity() {
	case notify.SeverityInfo:
		return "blue"
	case notify.SeverityWarning:
		return "orange"
	}
	return "red"
}
