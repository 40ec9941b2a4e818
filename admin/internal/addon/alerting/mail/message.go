package mail

import (
	"fmt"
	"html/template"
	netmail "net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
)

// maxSubject bounds what users' texts may add, in characters.
const maxSubject = 200

// message builds the mail. Its error is permanent: the address is not valid.
func (s *Sender) message(n *notify.Notice, now time.Time) (*gomail.Msg, error) {
	to, err := netmail.ParseAddress(n.Target)
	if err != nil {
		return nil, fmt.Errorf("mail address: %w", err)
	}
	rendered, err := s.Render(n)
	if err != nil {
		return nil, err
	}
	m := gomail.NewMsg(gomail.WithCharset(gomail.CharsetUTF8), gomail.WithNoDefaultUserAgent())
	m.FromMailAddress(s.from)
	m.ToMailAddress(to)
	m.Subject(rendered.Title)
	m.SetDateWithValue(now)
	m.SetMessageIDWithValue(n.DedupeKey + "@" + domainOf(s.from.Address))
	m.SetGenHeader("Carillon-Dedupe-Key", n.DedupeKey)
	m.SetGenHeader("Carillon-Kind", string(n.Kind()))
	// So that nobody's holiday notice answers (RFC 3834).
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetGenHeader("X-Auto-Response-Suppress", "All")
	m.SetBodyString(gomail.TypeTextPlain, rendered.Body)
	m.AddAlternativeString(gomail.TypeTextHTML, rendered.HTML)
	return m, nil
}

// Render implements notify.Sender.
func (s *Sender) Render(n *notify.Notice) (notify.Rendered, error) {
	c := newContent(n, s.config.Language)
	out := notify.Rendered{Title: c.Subject, ContentType: "text/plain; charset=utf-8", Body: c.plain()}
	if n.Channel != nil && n.Channel.Templates.HTML != "" {
		var err error
		if out.HTML, err = n.HTML(s.config.Language); err == nil {
			return out, nil
		}
		// The standard page follows: the text part says what is wrong with a template.
	}
	var html strings.Builder
	if err := page.Execute(&html, &c); err != nil {
		return out, fmt.Errorf("mail text: %w", err)
	}
	out.HTML = html.String()
	return out, nil
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// page is the HTML part. Mail programs know little CSS, hence the attributes;
// the template escapes what stands in the fields.
var page = template.Must(template.New("mail").Parse(`<!DOCTYPE html>
<html lang="{{.Lang}}"><head><meta charset="utf-8"><title>{{.Subject}}</title></head>
<body style="margin:0;padding:24px;background:#f5f5f4;font-family:-apple-system,'Segoe UI','Noto Sans','PingFang SC','Microsoft YaHei',sans-serif;color:#1c1917">
<div style="max-width:640px;margin:0 auto;background:#ffffff;border:1px solid #e7e5e4;border-radius:8px;padding:24px">
<h1 style="margin:0 0 12px;font-size:18px">{{.Title}}</h1>
{{if .Text}}<div style="font-size:14px;line-height:1.5;white-space:pre-wrap">{{.Text}}</div>
{{else}}{{with .Error}}<pre style="margin:0 0 16px;padding:12px;background:#fafaf9;border:1px solid #e7e5e4;border-radius:4px;font-size:13px;white-space:pre-wrap;word-break:break-word">{{.}}</pre>
{{end}}<p style="margin:0 0 16px;font-size:14px;line-height:1.5">{{.Summary}}</p>
{{with .MovedOn}}<p style="margin:0 0 16px;font-size:14px;line-height:1.5"><b>{{.}}</b></p>
{{end}}<table style="font-size:14px;border-collapse:collapse">
{{range .Facts}}<tr><td style="padding:3px 16px 3px 0;color:#57534e;vertical-align:top;white-space:nowrap">{{.Label}}</td><td style="padding:3px 0">{{.Value}}</td></tr>
{{end}}</table>
{{with .Log}}<p style="margin:16px 0 8px;font-size:14px">{{$.LogText}}</p>
<pre style="margin:0;padding:12px;background:#fafaf9;border:1px solid #e7e5e4;border-radius:4px;font-size:12px;white-space:pre-wrap;word-break:break-word">{{.}}</pre>
{{end}}{{end}}{{with .Link}}<p style="margin:20px 0 0"><a href="{{.}}" style="color:#0f766e">{{$.LinkText}}</a></p>
{{end}}<p style="margin:24px 0 0;font-size:12px;color:#78716c">{{.Footer}}</p>
</div></body></html>
`))
