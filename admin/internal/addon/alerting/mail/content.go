package mail

import (
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// content is what both parts of a mail say.
type content struct {
	notify.Content

	Lang, Subject, Footer string
}

var footers = map[notify.Language][2]string{
	notify.English: {"Sent by Carillon because you own this job or are listed in its alerts.", "Sent by Carillon because you are listed as one of its operators."},
	notify.Chinese: {"您是该任务的负责人或告警接收人，因此收到 Carillon（编钟）发出的这封邮件。", "您是 Carillon（编钟）的运维人员，因此收到这封邮件。"},
}

// channelFooters name the channel that is meant.
var channelFooters = map[notify.Language]string{
	notify.English: "Sent by Carillon to the alert channel %s.",
	notify.Chinese: "本邮件由 Carillon（编钟）通过告警渠道“%s”发出。",
}

func newContent(n *notify.Notice, server notify.Language) content {
	c := content{Content: n.Content(server), Lang: "en"}
	if c.Language == notify.Chinese {
		c.Lang = "zh-CN"
	}
	c.Subject = c.Title
	if n.Channel == nil || n.Channel.Templates.Title == "" {
		c.Subject = "[Carillon] " + c.Title
		if line := domain.ErrorLine(c.Error); line != "" && !n.Event.Kind.Platform() {
			c.Subject += map[notify.Language]string{notify.Chinese: "：", notify.English: ": "}[c.Language] + line
		}
		c.Subject = notify.Shorten(c.Subject, maxSubject)
	}
	switch {
	case n.Channel != nil:
		c.Footer = strings.Replace(channelFooters[c.Language], "%s", n.Channel.Name, 1)
	case n.Event.Kind.Platform():
		c.Footer = footers[c.Language][1]
	default:
		c.Footer = footers[c.Language][0]
	}
	return c
}

// plain is the text part.
func (c *content) plain() string {
	if c.Text != "" {
		return c.Text
	}
	return c.Title + "\n\n" + c.Content.Plain() + "\n-- \n" + c.Footer + "\n"
}
