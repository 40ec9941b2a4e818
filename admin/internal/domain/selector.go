package domain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Selector is a condition on labels, all of whose terms have to hold:
//
//	zone=eu, tier in (gold, silver), env!=prod, gpu, !spot
//
// A term asks that a label has a value (= or ==), one of several (in), not that
// value (!=) or none of several (notin), that it is there at all, or that it is
// not (!). A label that is not there meets != and notin.
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
	case t.op == labelIn && len(t.values) == 1:
		return t.key + "=" + t.values[0]
	case len(t.values) == 1:
		return t.key + "!=" + t.values[0]
	case t.op == labelIn:
		return t.key + " in (" + strings.Join(t.values, ", ") + ")"
	default:
		return t.key + " notin (" + strings.Join(t.values, ", ") + ")"
	}
}

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
	for p.at < len(p.text) && !strings.ContainsRune(" \t,=!()", rune(p.text[p.at])) {
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
