package apply

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/document"
)

// batch has the documents of files, with their places.
type batch struct {
	documents []json.RawMessage
	places    []place // of the documents, in their order
}

// place is where a document stands.
type place struct {
	file  string
	value *document.Value
}

// String is the place of the document as a whole, such as "shop.yaml:10 Job nightly".
func (p *place) String() string { return p.at("") }

// at is the place of a field, such as "shop.yaml:14 Job nightly: spec.schedule.cron".
func (p *place) at(path string) string {
	file := p.file
	if file == "-" {
		file = "standard input"
	}
	text := strings.TrimSpace(fmt.Sprintf("%s:%d %s %s", file, lineOf(p.value, path), p.text("kind"), p.text("name")))
	if path != "" {
		text += ": " + path
	}
	return text
}

// text is the value of a field at the top; empty: it is no text.
func (p *place) text(name string) string {
	for _, m := range p.value.Members {
		if m.Name == name && m.Value.IsScalar() {
			return m.Value.Text
		}
	}
	return ""
}

// lineOf is the line of a path such as spec.calendars[0].name. If the file does not have all of
// it, it is the line of the last part that is there.
func lineOf(v *document.Value, path string) int {
	line := v.Line
	for {
		path = strings.TrimPrefix(path, ".")
		if index, rest, is := strings.Cut(strings.TrimPrefix(path, "["), "]"); is && strings.HasPrefix(path, "[") {
			i, err := strconv.Atoi(index)
			if err != nil || i < 0 || i >= len(v.Items) {
				return line
			}
			v, path = v.Items[i], rest
			line = v.Line
			continue
		}
		at := -1
		for i, m := range v.Members { // a name may have a dot: the longest one is meant
			rest, is := strings.CutPrefix(path, m.Name)
			if is && (rest == "" || rest[0] == '.' || rest[0] == '[') && (at < 0 || len(m.Name) > len(v.Members[at].Name)) {
				at = i
			}
		}
		if at < 0 {
			return line
		}
		m := v.Members[at]
		line, v, path = m.Line, m.Value, path[len(m.Name):]
	}
}

// ofDocument is the location of a field in a request with documents.
var ofDocument = regexp.MustCompile(`^body\.documents\[(\d+)\]\.?(.*)$`)

// named is an error of the server with the places in the files, in the order of the files.
func (b *batch) named(err error) error {
	p, is := errors.AsType[*apiclient.Problem](err)
	if !is {
		return err
	}
	type placed struct {
		item           apiclient.ProblemItem
		document, line int
	}
	list := make([]placed, len(p.Errors))
	for i, item := range p.Errors {
		list[i].item = item
		parts := ofDocument.FindStringSubmatch(item.Location)
		if parts == nil {
			continue
		}
		if n, err := strconv.Atoi(parts[1]); err == nil && n < len(b.places) {
			list[i] = placed{item, n, lineOf(b.places[n].value, parts[2])}
			list[i].item.Location = b.places[n].at(parts[2])
		}
	}
	slices.SortStableFunc(list, func(a, b placed) int { return cmp.Or(cmp.Compare(a.document, b.document), cmp.Compare(a.line, b.line)) })
	said := *p
	said.Errors = nil
	for _, one := range list {
		said.Errors = append(said.Errors, one.item)
	}
	if len(said.Errors) == 1 && strings.Contains(said.Detail, said.Errors[0].Message) {
		said.Detail = said.Errors[0].Location + ": " + said.Errors[0].Message
	}
	return &said
}

// of is the place of the document of a plan's item; empty: no file has it.
func (b *batch) of(item *apiclient.PlanItem) string {
	for i := range b.places {
		if p := &b.places[i]; p.text("kind") == item.Kind && strings.TrimSpace(p.text("name")) == item.Name {
			return p.String()
		}
	}
	return ""
}
