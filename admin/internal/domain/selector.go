package domain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Selector is a condition on labels, all of whose terms have to hold:
//
//	zone=eu, tier in (gold, silver), env!=prod, gpu, !spot
//
// A term asks that a label has a value (= or ==), one of several (in), not that
// value (!=) or none of several (notin), that it is there at all, or that it is
// not (!). A label that is not there meets != and notin. A value with other signs is
// written in double quotes.
type Selector struct {
	Text  string // as it was written; empty meets everything
	terms []selectorTerm
}

type selectorTerm struct {
	key    string
	op     selectorOp
	values []string
}

type selectorOp uint8

const (
	labelIn selectorOp = iota
	labelNotIn
	labelExists
	labelMissing
)

// MaxSelector bounds a selector's text, in bytes.
const MaxSelector = 1024

// Empty reports whether it meets everything.
func (s Selector) Empty() bool { return len(s.terms) == 0 }

func (s Selector) String() string { return s.Text }

// Matches reports whether labels meet all terms.
func (s Selector) Matches(labels map[string]string) bool {
	for i := range s.terms {
		if !s.terms[i].matches(labels) {
			return false
		}
	}
	return true
}

// Unmet returns the first term that labels do not meet; empty: they meet all.
func (s Selector) Unmet(labels map[string]string) string {
	for i := range s.terms {
		if !s.terms[i].matches(labels) {
			return s.terms[i].String()
		}
	}
	return ""
}

func (t *selectorTerm) matches(labels map[string]string) bool {
	v, ok := labels[t.key]
	switch t.op {
	case labelIn:
		return ok && slices.Contains(t.values, v)
	case labelNotIn:
		return !ok || !slices.Contains(t.values, v)
	case labelExists:
		return ok
	default:
		return !ok
	}
}

func (t *selectorTerm) String() string {
	switch {
	case t.op == labelExists:
		return t.key
	case t.op == labelMissing:
		return "!" + t.key
	}
	values := make([]string, len(t.values))
	for i, v := range t.values {
		if values[i] = v; strings.ContainsAny(v, notInWords+`"`) {
			values[i] = strconv.Quote(v)
		}
	}
	switch list := strings.Join(values, ", "); {
	case t.op == labelIn && len(values) == 1:
		return t.key + "=" + list
	case len(values) == 1:
		return t.key + "!=" + list
	case t.op == labelIn:
		return t.key + " in (" + list + ")"
	default:
		return t.key + " notin (" + list + ")"
	}
}

// notInWords end a key or a value that is not in quotes.
const notInWords = " \t,=!()"

// Contradiction says why no labels can meet the selector, with the next step; nil: some can.
func (s Selector) Contradiction() error {
	for i := range s.terms {
		for j := range s.terms[:i] {
			if err := s.terms[j].excludes(&s.terms[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// excludes is not nil if no labels meet both terms.
func (t *selectorTerm) excludes(o *selectorTerm) error {
	if t.key != o.key {
		return nil
	}
	if t.op > o.op {
		t, o = o, t
	}
	no := func(v string) bool { return !slices.Contains(o.values, v) }
	switch {
	case t.op == labelIn && o.op == labelIn && !slices.ContainsFunc(t.values, func(v string) bool { return !no(v) }):
		either := selectorTerm{key: t.key, op: labelIn, values: append(slices.Clone(t.values), o.values...)}
		return fmt.Errorf("nothing meets both %s and %s, because a label has one value: write %s for one of them", t, o, &either)
	case t.op == labelIn && o.op == labelNotIn && !slices.ContainsFunc(t.values, no), o.op == labelMissing && (t.op == labelIn || t.op == labelExists):
		return fmt.Errorf("nothing meets both %s and %s: leave one of them out", t, o)
	}
	return nil
}

// Terms calls yield with each term: a label with one of values, or with any if values is nil.
// not: the labels that do not have it meet the term.
func (s Selector) Terms(yield func(key string, values []string, not bool)) {
	for _, t := range s.terms {
		yield(t.key, t.values, t.op == labelNotIn || t.op == labelMissing)
	}
}

// ParseFilter reads the selector of a list. The value of a lone key=value may have any signs but
// a comma and quotes. A selector that nothing can meet is an error.
func ParseFilter(text string) (Selector, error) {
	key, value, exact := strings.Cut(text, "=")
	if exact && !strings.ContainsAny(key, " \t,!()\"") && key != "" && !strings.ContainsAny(value, ",\"") && !strings.HasPrefix(value, "=") {
		if strings.Contains(key, ":") {
			return Selector{}, errColon
		}
		return Selector{Text: text, terms: []selectorTerm{{key: key, op: labelIn, values: []string{value}}}}, nil
	}
	s, err := ParseSelector(text)
	if err != nil {
		return Selector{}, err
	}
	if slices.ContainsFunc(s.terms, func(t selectorTerm) bool { return strings.Contains(t.key, ":") }) {
		return Selector{}, errColon
	}
	if err := s.Contradiction(); err != nil {
		return Selector{}, err
	}
	return s, nil
}

var errColon = errors.New("must be key or key=value; no label has a colon in its key")

// ParseSelector reads a selector; the error says what is wrong, and at which
// byte.
func ParseSelector(text string) (Selector, error) {
	s := Selector{Text: strings.TrimSpace(text)}
	if len(s.Text) > MaxSelector {
		return Selector{}, fmt.Errorf("must not exceed %d bytes", MaxSelector)
	}
	if strings.ContainsFunc(s.Text, unicode.IsControl) {
		return Selector{}, errors.New("must not contain control characters or line breaks")
	}
	p := selectorParser{text: s.Text}
	for p.skip(); p.at < len(p.text); p.skip() {
		if len(s.terms) > 0 && !p.take(",") {
			return Selector{}, p.wrong("a comma between two terms")
		}
		term, err := p.term()
		if err != nil {
			return Selector{}, err
		}
		s.terms = append(s.terms, term)
	}
	return s, nil
}

type selectorParser struct {
	text string
	at   int
}

func (p *selectorParser) wrong(want string) error {
	return fmt.Errorf("expected %s at character %d of %q", want, p.at+1, p.text)
}

func (p *selectorParser) skip() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

func (p *selectorParser) take(token string) bool {
	p.skip()
	if !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

// word reads a key or a value: everything up to a blank or a sign.
func (p *selectorParser) word() string {
	p.skip()
	from := p.at
	if whole, err := strconv.QuotedPrefix(p.text[from:]); err == nil && whole[0] == '"' {
		p.at += len(whole)
		text, _ := strconv.Unquote(whole) // QuotedPrefix has read it
		return text
	}
	for p.at < len(p.text) && !strings.ContainsRune(notInWords, rune(p.text[p.at])) {
		p.at++
	}
	return p.text[from:p.at]
}

func (p *selectorParser) term() (selectorTerm, error) {
	if p.take("!") {
		key := p.word()
		if key == "" {
			return selectorTerm{}, p.wrong("a label's name")
		}
		return selectorTerm{key: key, op: labelMissing}, nil
	}
	t := selectorTerm{key: p.word(), op: labelExists}
	if t.key == "" {
		return t, p.wrong("a label's name")
	}
	switch {
	case p.take("!="):
		t.op, t.values = labelNotIn, []string{p.word()}
	case p.take("=="), p.take("="):
		t.op, t.values = labelIn, []string{p.word()}
	default:
		before := p.at
		switch p.word() {
		case "in":
			t.op = labelIn
		case "notin":
			t.op = labelNotIn
		default:
			p.at = before
			return t, nil
		}
		var err error
		t.values, err = p.list()
		return t, err
	}
	return t, nil
}

func (p *selectorParser) list() (values []string, err error) {
	if !p.take("(") {
		return nil, p.wrong("a list such as (a, b)")
	}
	for {
		values = append(values, p.word())
		if p.take(")") {
			return values, nil
		}
		if !p.take(",") {
			return nil, p.wrong("a comma or the end of the list")
		}
	}
}
