package chat

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
)

// weCom is a group's robot. Its messages are text and not its Markdown, in which
// texts could call people; a text has at most 2,048 bytes.
var weCom = product{
	kind: noun.ChannelWeCom,
	message: func(n *notify.Notice, c *notify.Content) object {
		text := object{"content": plain(n, c, 2048)}
		called := append([]string{}, n.Channel.Mentions...)
		if n.Channel.MentionAll {
			called = append(called, "@all")
		}
		if len(called) > 0 {
			text["mentioned_list"] = called
		}
		return object{"msgtype": "text", "text": text}
	},
	address: here,
	verdict: func(a post.Answer) error {
		return errCode(a, map[int64]time.Duration{-1: 0, 45009: throttled, 45033: throttled})
	},
}
