package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Templates are the tenants', and run in every node: they get text and numbers
// and no functions but these, and are bounded in what they make and in time.
const (
	maxRendered = 64 << 10
	// renderTime bounds one rendering. A usual one takes less than a millisecond.
	renderTime = 200 * time.Millisecond
	maxFormat  = 256
	// maxSteps bounds the rounds of loops and the calls of functions of one rendering,
	// and maxMade the bytes that its functions make.
	maxSteps = 2_000
	maxMade  = 1 << 20
	// maxActions bounds the actions of a template. maxBlocks bounds how deep its blocks
	// (if, with, range) are nested, and maxParentheses the same of parentheses in an
	// action. html/template takes twice the time for each loop around another one.
	maxActions     = 1_000
	maxBlocks      = 8
	maxParentheses = 16
)

// Data is what templates can name. docs/guide/alerts.md lists it.
type Data struct {
	Payload

	Language                       string
	Phase, Severity                string
	CreatedAt                      string
	Run                            RunData // without an ID where it is not about a run
	MovedOn, Error, Link, LinkText string
	Facts                          []Fact
	Channel                        string
}

// RunData is Run with nothing missing.
type RunData struct {
	ID, Cause, State, Reason, Message, FireAt, StartedAt, FinishedAt, ErrorKind, Error string
	Attempt, MaxAttempts                                                               int
	Instance                                                                           Ref
}

func (n *Notice) data(language Language, c *Content) *Data {
	d := &Data{
		Payload: NewPayload(n, language), Language: string(language), Phase: string(n.Phase), Severity: string(n.Severity()),
		MovedOn: c.MovedOn, Error: c.Error, Link: c.Link, LinkText: c.LinkText, Facts: c.Facts,
	}
	orEmpty := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	d.CreatedAt = orEmpty(d.Payload.CreatedAt)
	if r := d.Payload.Run; r != nil {
		d.Run = RunData{
			ID: r.ID, Cause: r.Cause, State: r.State, Reason: r.Reason, Message: r.Message, FireAt: orEmpty(r.FireAt), StartedAt: orEmpty(r.StartedAt),
			FinishedAt: orEmpty(r.FinishedAt), ErrorKind: r.ErrorKind, Error: r.Error, Attempt: r.Attempt, MaxAttempts: r.MaxAttempts,
		}
		if r.Instance != nil {
			d.Run.Instance = *r.Instance
		}
	}
	if n.Channel != nil {
		d.Channel = n.Channel.Name
	}
	return d
}

// Content is what people read, in the channel's language or else the server's,
// made by the channel's templates or else by ours. A template that fails is told
// as part of the text, and the alert all the same.
func (n *Notice) Content(server Language) Content {
	language := n.Language(server)
	c := n.standard(language)
	if n.Channel == nil || n.Channel.Templates.Title == "" && n.Channel.Templates.Text == "" {
		return c
	}
	data := n.data(language, &c)
	var failed []error
	render := func(what, text string) string {
		if text == "" {
			return ""
		}
		out, err := renderText(text, data)
		if err != nil {
			failed = append(failed, fmt.Errorf("template %s: %w", what, err))
		}
		return out
	}
	if title := Line(render("title", n.Channel.Templates.Title), maxTitle); title != "" {
		c.Title = title
	}
	c.Text = strings.TrimSpace(Block(render("text", n.Channel.Templates.Text), maxRendered))
	if len(failed) > 0 {
		c.Error = strings.TrimSpace(c.Error + "\n" + Line(errors.Join(failed...).Error(), maxFact))
	}
	return c
}

// Body is a webhook's, by its channel's template.
func (n *Notice) Body(language Language) (string, error) {
	c := n.standard(language)
	body, err := renderText(n.Channel.Templates.Body, n.data(language, &c))
	if err != nil {
		return "", fmt.Errorf("template body: %w", err)
	}
	if isJSON(n.Channel.Templates.ContentType) && !json.Valid([]byte(body)) {
		return "", errNoJSON
	}
	return body, nil
}

// HTML is a mail's part, by its channel's template.
func (n *Notice) HTML(server Language) (string, error) {
	language := n.Language(server)
	c := n.standard(language)
	return renderHTML(n.Channel.Templates.HTML, n.data(language, &c))
}

var errNoJSON = errors.New("template body: the result is no JSON: write {{json .Title}}, without quotes, for a text")

func isJSON(contentType string) bool {
	return contentType == "" || strings.HasPrefix(contentType, "application/json")
}

// CheckTemplates renders samples of all kinds of alerts.
func CheckTemplates(spec *noun.AlertChannelSpec) error {
	t := &spec.Templates
	for _, kind := range sampleKinds {
		n := Sample(kind)
		n.Channel = &Channel{AlertChannelSpec: *spec}
		for _, language := range []Language{English, Chinese} {
			c := n.standard(language)
			data := n.data(language, &c)
			for _, part := range []struct {
				at, text string
				render   func(string, *Data) (string, error)
			}{{"title", t.Title, renderText}, {"text", t.Text, renderText}, {"html", t.HTML, renderHTML}, {"body", t.Body, renderText}} {
				if part.text == "" {
					continue
				}
				out, err := part.render(part.text, data)
				if err == nil && part.at == "body" && isJSON(t.ContentType) && !json.Valid([]byte(out)) {
					err = errNoJSON
				}
				if err != nil {
					return domain.Invalid("body.spec.templates."+part.at, "fails with an alert of the kind %s: %s", kind, Line(err.Error(), maxFact))
				}
			}
		}
	}
	return nil
}

// budget bounds one rendering.
type budget struct {
	end   time.Time
	steps int
	made  int // bytes
	out   strings.Builder
}

var (
	errTooSlow = fmt.Errorf("takes longer than %s", renderTime)
	errTooMany = fmt.Errorf("takes more than %d steps", maxSteps)
	errTooLong = fmt.Errorf("makes more than %d KiB", maxRendered>>10)
	errTooMuch = fmt.Errorf("makes more than %d KiB on its way", maxMade>>10)
	errTooDeep = fmt.Errorf("has blocks nested deeper than %d, or parentheses deeper than %d", maxBlocks, maxParentheses)
	errTooFull = fmt.Errorf("has more than %d actions", maxActions)
)

func (b *budget) tick() (string, error) {
	if b.steps++; b.steps > maxSteps {
		return "", errTooMany
	}
	if time.Now().After(b.end) {
		return "", errTooSlow
	}
	return "", nil
}

// Write implements io.Writer.
func (b *budget) Write(p []byte) (int, error) {
	if _, err := b.tick(); err != nil {
		return 0, err
	}
	if b.out.Len()+len(p) > maxRendered {
		return 0, errTooLong
	}
	return b.out.Write(p)
}

// text bounds what a function makes.
func (b *budget) text(s string) (string, error) {
	if len(s) > maxRendered {
		return "", errTooLong
	}
	if b.made += len(s); b.made > maxMade {
		return "", errTooMuch
	}
	return b.tick()
}

func (b *budget) bounded(s string) (string, error) {
	if _, err := b.text(s); err != nil {
		return "", err
	}
	return s, nil
}

// join bounds what is put together before it is.
func (b *budget) join(space bool, args []any) (string, error) {
	var out strings.Builder
	for i, arg := range args {
		if space && i > 0 {
			out.WriteByte(' ')
		}
		s, ok := arg.(string)
		if !ok {
			s = fmt.Sprint(arg)
		}
		if out.Len()+len(s) > maxRendered {
			return "", errTooLong
		}
		out.WriteString(s)
	}
	return b.bounded(out.String())
}

var wide = regexp.MustCompile(`%[^%a-zA-Z]*([0-9]{3}|\*)`)

func (b *budget) printf(format string, args ...any) (string, error) {
	longest := 0
	for _, arg := range args {
		s, ok := arg.(string)
		if !ok {
			s = fmt.Sprint(arg)
		}
		longest = max(longest, len(s))
	}
	switch {
	case len(format) > maxFormat || wide.MatchString(format):
		return "", errors.New("printf: a format has at most 256 bytes, and widths below 100")
	case (strings.Count(format, "%")+1)*longest > maxRendered:
		return "", errTooLong
	}
	return b.bounded(fmt.Sprintf(format, args...))
}

func (b *budget) functions() map[string]any {
	// The escapers make a byte at most six.
	escape := func(f func(...any) string) func(...any) (string, error) {
		return func(args ...any) (string, error) {
			s, err := b.join(false, args)
			if err != nil {
				return "", err
			}
			return b.bounded(f(s))
		}
	}
	return map[string]any{
		"tick":     b.tick,
		"print":    func(args ...any) (string, error) { return b.join(false, args) },
		"println":  func(args ...any) (string, error) { return b.join(true, append(args, "\n")) },
		"printf":   b.printf,
		"html":     escape(template.HTMLEscaper),
		"js":       escape(template.JSEscaper),
		"urlquery": escape(template.URLQueryEscaper),
		"json": func(v any) (string, error) {
			raw, err := json.Marshal(v)
			if err != nil {
				return "", err
			}
			return b.bounded(string(raw))
		},
		"lower": func(s string) (string, error) { return b.bounded(strings.ToLower(s)) },
		"upper": func(s string) (string, error) { return b.bounded(strings.ToUpper(s)) },
		"trim":  func(s string) (string, error) { return b.bounded(strings.TrimSpace(s)) },
		"truncate": func(n int, s string) (string, error) {
			return b.bounded(Shorten(s, max(1, n)))
		},
		"replace": func(old, by, s string) (string, error) {
			if old == "" || len(s)+strings.Count(s, old)*len(by) > maxRendered {
				return "", errTooLong
			}
			return b.bounded(strings.ReplaceAll(s, old, by))
		},
		"contains": func(part, s string) (bool, error) {
			_, err := b.text(part)
			return strings.Contains(s, part), err
		},
		"default": func(or, s string) string {
			if s == "" {
				return or
			}
			return s
		},
	}
}

func renderText(text string, data *Data) (string, error) {
	if err := checkSize(text); err != nil {
		return "", err
	}
	b := &budget{end: time.Now().Add(renderTime)}
	t, err := template.New("template").Option("missingkey=zero").Funcs(b.functions()).Parse(text)
	if err != nil {
		return "", plain(err)
	}
	if len(t.Templates()) > 1 {
		return "", errNested
	}
	if t.Tree == nil || t.Root == nil {
		return "", nil
	}
	if err := watch(t.Root, b, 0); err != nil {
		return "", err
	}
	if err := t.Execute(b, data); err != nil {
		return "", plain(err)
	}
	return b.out.String(), nil
}

func renderHTML(text string, data *Data) (string, error) {
	if err := checkSize(text); err != nil {
		return "", err
	}
	b := &budget{end: time.Now().Add(renderTime)}
	t, err := htmltemplate.New("template").Option("missingkey=zero").Funcs(b.functions()).Parse(text)
	if err != nil {
		return "", plain(err)
	}
	if len(t.Templates()) > 1 {
		return "", errNested
	}
	if t.Tree == nil || t.Tree.Root == nil {
		return "", nil
	}
	if err := watch(t.Tree.Root, b, 0); err != nil {
		return "", err
	}
	if err := t.Execute(b, data); err != nil {
		return "", plain(err)
	}
	return b.out.String(), nil
}

// checkSize refuses what would cost too much to parse. Parentheses in quotes count too.
func checkSize(text string) error {
	actions := 0
	for {
		_, rest, found := strings.Cut(text, "{{")
		if !found {
			return nil
		}
		if actions++; actions > maxActions {
			return errTooFull
		}
		var action string
		action, text, _ = strings.Cut(rest, "}}")
		deep := 0
		for i := 0; i < len(action); i++ {
			switch action[i] {
			case '(':
				if deep++; deep > maxParentheses {
					return errTooDeep
				}
			case ')':
				deep--
			}
		}
	}
}

var errNested = errors.New("define, block and template are not for these templates")

// plain leaves out what an error says of our side.
func plain(err error) error {
	return errors.New(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "html/template:"), "template: "))
}

// watch makes each round of a loop look at the clock, and refuses what would call
// itself.
func watch(list *parse.ListNode, b *budget, depth int) error {
	if list == nil {
		return nil
	}
	if depth > maxBlocks {
		return errTooDeep
	}
	for _, node := range list.Nodes {
		var err error
		switch node := node.(type) {
		case *parse.IfNode:
			err = watchBranch(&node.BranchNode, b, depth+1)
		case *parse.WithNode:
			err = watchBranch(&node.BranchNode, b, depth+1)
		case *parse.RangeNode:
			if err = watchBranch(&node.BranchNode, b, depth+1); err == nil {
				// A variable is set, so that nothing is written where it stands.
				var tick *template.Template
				if tick, err = template.New("tick").Funcs(b.functions()).Parse("{{$_tick := tick}}"); err == nil {
					node.List.Nodes = append([]parse.Node{tick.Root.Nodes[0]}, node.List.Nodes...)
				}
			}
		case *parse.TemplateNode:
			err = errNested
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func watchBranch(b *parse.BranchNode, clock *budget, depth int) error {
	if err := watch(b.List, clock, depth); err != nil {
		return err
	}
	if b.ElseList != nil && len(b.ElseList.Nodes) == 1 && b.ElseList.Nodes[0].Type() == parse.NodeIf {
		depth-- // else if
	}
	return watch(b.ElseList, clock, depth)
}
