package apply

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/document"
)

// documents are documents of files.
type documents []placed

// placed is a document with its file and the tenant that it names.
type placed struct {
	file, tenant string
	*document.Value
}

// at is the place of a field, such as "shop.yaml:14 Job nightly: spec.schedule.cron". Without a
// path it is the place of the document, such as "shop.yaml:10 Job nightly".
func (p *placed) at(path string) string {
	file := p.file
	if file == "-" {
		file = "standard input"
	}
	text := strings.TrimSpace(fmt.Sprintf("%s:%d %s %s", file, p.line(path), p.text("kind"), p.text("name")))
	if path != "" {
		text += ": " + path
	}
	return text
}

// line is the line of a field by its path, or of the last part of it that is there.
func (p *placed) line(path string) int { return cmp.Or(p.LineOf(path), p.Line) }

// text is the value of a field at the top; empty: it is no text.
func (p *placed) text(name string) string {
	if v := p.Field(name); v != nil && v.IsScalar() {
		return strings.TrimSpace(v.Text)
	}
	return ""
}

// ofDocument is the location of a field in a request with documents.
var ofDocument = regexp.MustCompile(`^body\.documents\[(\d+)\]\.?(.*)$`)

// named is an error of the server with the places in the files, in the order of the files.
func (d documents) named(err error) error {
	p, is := errors.AsType[*apiclient.Problem](err)
	if !is {
		return err
	}
	type said struct {
		item           apiclient.ProblemItem
		document, line int
	}
	list := make([]said, len(p.Errors))
	for i, item := range p.Errors {
		list[i].item = item
		parts := ofDocument.FindStringSubmatch(item.Location)
		if parts == nil {
			continue
		}
		if n, err := strconv.Atoi(parts[1]); err == nil && n < len(d) {
			list[i] = said{item, n, d[n].line(parts[2])}
			list[i].item.Location = d[n].at(parts[2])
		}
	}
	slices.SortStableFunc(list, func(a, b said) int { return cmp.Or(cmp.Compare(a.document, b.document), cmp.Compare(a.line, b.line)) })
	out := *p
	out.Errors = nil
	for _, one := range list {
		out.Errors = append(out.Errors, one.item)
	}
	if len(out.Errors) == 1 && strings.Contains(out.Detail, out.Errors[0].Message) {
		out.Detail = out.Errors[0].Location + ": " + out.Errors[0].Message
	}
	return &out
}

// of is the place of the document of a plan's item; empty: no file has it.
func (d documents) of(item *apiclient.PlanItem) string {
	for i := range d {
		if p := &d[i]; p.text("kind") == item.Kind && p.text("name") == item.Name {
			return p.at("")
		}
	}
	return ""
}
