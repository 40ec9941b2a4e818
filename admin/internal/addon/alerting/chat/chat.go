package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
)

// object is JSON that is sent.
type object = map[string]any

// product is how one of them is spoken to.
type product struct {
	kind noun.ChannelKind
	// base is where its interface is, if the channel does not say; empty: the
	// channel has a URL.
	base string
	// message is the request's body, without what says who sends it.
	message func(n *notify.Notice, c *notify.Content) object
	// address is where the message goes, and completes header and body.
	address func(n *notify.Notice, base string, header http.Header, body object, now time.Time) string
	// verdict reads an answer with a status of 2xx, or one that says more than its
	// status; nil: the status says it all.
	verdict func(a post.Answer) error
}

// Options of the senders.
type Options struct {
	Client   *post.Client
	Language notify.Language // where the channel has none; empty = English
}

// Sender tells alerts in one product. It is safe for concurrent use.
type Sender struct {
	product
	opt Options
	now func() time.Time
}

var _ notify.Sender = (*Sender)(nil)

// New returns a sender for each product; it opens no connection.
func New(opt Options) []notify.Sender {
	var out []notify.Sender
	for _, p := range []product{dingTalk, feishu, weCom, slack, teams, telegram, pagerDuty, opsgenie} {
		out = append(out, &Sender{product: p, opt: opt, now: time.Now})
	}
	return out
}

// Channel implements notify.Sender.
func (s *Sender) Channel() string { return string(s.kind) }

// Timeout implements notify.Sender.
func (s *Sender) Timeout() time.Duration { return post.Timeout }

func (s *Sender) baseOf(n *notify.Notice) string {
	switch {
	case s.base == "":
		return n.Channel.Secrets.URL
	case n.Channel.BaseURL != "":
		return n.Channel.BaseURL
	default:
		return s.base
	}
}

// Lane implements notify.Sender.
func (s *Sender) Lane(n *notify.Notice) string {
	if n.Channel == nil {
		return "?"
	}
	return post.Lane(n, s.baseOf(n))
}

// Render implements notify.Sender.
func (s *Sender) Render(n *notify.Notice) (notify.Rendered, error) {
	c := n.Content(s.opt.Language)
	body, err := encode(s.message(n, &c), "  ")
	return notify.Rendered{Title: c.Title, ContentType: "application/json", Body: string(body)}, err
}

// Send implements notify.Sender.
func (s *Sender) Send(ctx context.Context, n *notify.Notice) error {
	if n.Channel == nil {
		return notify.Permanent(fmt.Errorf("%s is told through alert channels only", s.kind))
	}
	c := n.Content(s.opt.Language)
	header, body := http.Header{"Content-Type": {"application/json; charset=utf-8"}}, s.message(n, &c)
	address := s.address(n, s.baseOf(n), header, body, s.now())
	raw, err := encode(body, "")
	if err != nil {
		return notify.Permanent(err)
	}
	answer, err := s.opt.Client.Do(ctx, address, header, raw)
	if err != nil {
		return err
	}
	if s.verdict != nil {
		if err := s.verdict(answer); err != nil {
			return err
		}
	}
	return answer.Verdict()
}

// encode leaves &, < and > as they are: they count for the products' limits.
func encode(body object, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(body)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// here is the address of products whose channel has the whole of it.
func here(_ *notify.Notice, base string, _ http.Header, _ object, _ time.Time) string { return base }

// refused is a "no" that the body says.
func refused(code any, message string) error {
	return fmt.Errorf("the receiver refused the message: %v %s", code, post.Clean(message))
}

// later is a "no" that may be a "yes" after a while.
func later(err error, wait time.Duration) error {
	return &notify.SendError{Err: err, RetryAfter: wait}
}

// throttled is how long a product is left alone that limits messages by the minute.
const throttled = time.Minute

// unreadable is an answer of 2xx that does not say whether the message was taken.
func unreadable(a post.Answer) error {
	return fmt.Errorf("the receiver answered %d without saying whether it took the message%s", a.Status, a.Excerpt())
}

// title is a message's first line.
func title(n *notify.Notice, c *notify.Content) string {
	if n.Channel != nil && n.Channel.Templates.Title != "" {
		return c.Title
	}
	return "[Carillon] " + c.Title
}

// lead is what comes after the title: what happened, or the channel's own text.
func lead(c *notify.Content) string {
	if c.Text != "" {
		return c.Text
	}
	if c.MovedOn != "" {
		return c.Summary + "\n" + c.MovedOn
	}
	return c.Summary
}

// facts are the table; a channel's own text stands for it.
func facts(c *notify.Content) []notify.Fact {
	if c.Text != "" {
		return nil
	}
	return c.Facts
}

// plain is a message of at most so many bytes without any format.
func plain(n *notify.Notice, c *notify.Content, limit int) string {
	var table strings.Builder
	for _, f := range facts(c) {
		table.WriteString(f.Label + ": " + f.Value + "\n")
	}
	end := ""
	if c.Link != "" && c.Text == "" {
		end = "\n" + c.LinkText + ": " + c.Link
	}
	head := title(n, c) + "\n" + lead(c)
	if table.Len() > 0 {
		head += "\n\n" + strings.TrimRight(table.String(), "\n")
	}
	room := limit - len(end)
	if c.Error != "" && len(head)+64 < room {
		head += "\n\n" + cut(c.Error, room-len(head)-2)
	}
	return cut(head, room) + end
}

// cut cuts a text to so many bytes, at a character, with a mark at its end.
func cut(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	end := max(0, limit-len(mark))
	for end > 0 && s[end]&0xc0 == 0x80 {
		end--
	}
	return s[:end] + mark
}
