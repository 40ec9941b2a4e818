package document

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxAliased bounds the values that aliases repeat: a few lines can ask for billions.
const maxAliased = 100_000

// yamlReader builds values from the nodes of a document.
type yamlReader struct {
	inAlias map[*yaml.Node]bool
	aliased int
}

func readYAML(text []byte) ([]*Value, error) {
	in := yaml.NewDecoder(bytes.NewReader(text))
	var out []*Value
	for {
		var doc yaml.Node
		err := in.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, syntaxError(text, err)
		}
		r := yamlReader{inAlias: map[*yaml.Node]bool{}}
		v, err := r.value(doc.Content[0], 0)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

func (r *yamlReader) value(n *yaml.Node, depth int) (*Value, error) {
	if r.aliased += min(len(r.inAlias), 1); r.aliased > maxAliased {
		return nil, wrong(n.Line, "aliases repeat more than %d values; write the values without aliases", maxAliased)
	}
	if depth == maxDepth {
		return nil, wrong(n.Line, "it is nested deeper than %d levels", maxDepth)
	}
	v := &Value{Line: n.Line}
	switch n.Kind {
	case yaml.AliasNode:
		if r.inAlias[n.Alias] {
			return nil, wrong(n.Line, "the alias *%s stands inside of what it repeats", n.Value)
		}
		r.inAlias[n.Alias] = true
		defer delete(r.inAlias, n.Alias)
		return r.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		v.Kind = List
		for _, child := range n.Content {
			item, err := r.value(child, depth+1)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, item)
		}
		return v, tagged(n, v, "!!seq")
	case yaml.MappingNode:
		v.Kind = Object
		if err := r.object(v, n, depth+1); err != nil {
			return nil, err
		}
		return v, tagged(n, v, "!!map")
	default:
		return v, scalar(v, n)
	}
}

func (r *yamlReader) object(v *Value, n *yaml.Node, depth int) error {
	var merged []Member
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return wrong(key.Line, "the name of a field must be a text")
		}
		value, err := r.value(n.Content[i+1], depth)
		if err != nil {
			return err
		}
		if key.Value == "<<" && plain(key) {
			more, err := mergedFrom(value)
			if err != nil {
				return err
			}
			merged = append(merged, more...)
			continue
		}
		if seen[key.Value] {
			return wrong(key.Line, "%q comes twice in one object; say it once", key.Value)
		}
		seen[key.Value] = true
		v.Members = append(v.Members, Member{key.Value, key.Line, value})
	}
	for _, m := range merged { // what the object says itself wins, then the first
		if !seen[m.Name] {
			seen[m.Name] = true
			v.Members = append(v.Members, m)
		}
	}
	return nil
}

// mergedFrom reads what follows the key <<.
func mergedFrom(v *Value) ([]Member, error) {
	if v.Kind == Object {
		return v.Members, nil
	}
	var out []Member
	for _, item := range v.Items {
		if item.Kind != Object {
			return nil, wrong(item.Line, "<< takes an object or a list of objects")
		}
		out = append(out, item.Members...)
	}
	if v.Kind != List {
		return nil, wrong(v.Line, "<< takes an object or a list of objects")
	}
	return out, nil
}

const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func plain(n *yaml.Node) bool { return n.Style&quoted == 0 }

// jsonNumber is the grammar of numbers in RFC 8259.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// meaning is the rule for scalars without quotes. Null and booleans are those of YAML 1.2.
func meaning(text string) (kind Kind, as string) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return Null, text
	case "true", "True", "TRUE":
		return Bool, "true"
	case "false", "False", "FALSE":
		return Bool, "false"
	}
	if jsonNumber.MatchString(text) {
		return Number, text
	}
	return Text, text
}

func scalar(v *Value, n *yaml.Node) error {
	v.Kind, v.Text = Text, n.Value
	if plain(n) {
		v.Kind, v.Text = meaning(n.Value)
	}
	if n.Style&yaml.TaggedStyle != 0 && n.Tag == "!!str" {
		v.Kind, v.Text = Text, n.Value
	}
	if n.Anchor != "" && v.Kind == Null {
		return wrong(n.Line, "the anchor &%s has no value; %s", n.Anchor, inQuotes("&"+n.Anchor))
	}
	return tagged(n, v, map[Kind]string{Null: "!!null", Bool: "!!bool", Number: "!!float", Text: "!!str"}[v.Kind])
}

// tagged refuses a tag that says something else than the value.
func tagged(n *yaml.Node, v *Value, is string) error {
	if n.Style&yaml.TaggedStyle == 0 || n.Tag == is {
		return nil
	}
	if n.Tag == "!!int" && v.Kind == Number && !strings.ContainsAny(v.Text, ".eE") {
		return nil
	}
	if v.Text == "" && !strings.HasPrefix(n.Tag, "!!") {
		return wrong(n.Line, "the tag %s has no value; %s", n.Tag, inQuotes(n.Tag))
	}
	return wrong(n.Line, "the tag %s does not fit %q; leave the tag out, and quote the value if it is a text", n.Tag, v.Text)
}

func inQuotes(text string) string {
	return "if it is meant as a text, put it in quotes: " + strconv.Quote(text)
}

var (
	yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)
	// ofParser are errors of the parser that are not those of its scanner.
	ofParser = regexp.MustCompile(`^did not find expected (<|key|'|,)`)
	// An entry or a value that begins with a character that YAML uses itself.
	special = regexp.MustCompile("^\\s*(?:- +)*(?:[^\\s#'\"{\\[][^:#]*:\\s+)?(?:- +)*([*&!%@`][^#]*?)\\s*(?:\\s#.*)?$")
)

// syntaxError gives an error of the YAML parser its line, and names the cause where
// a text needs quotes, such as a cron expression that begins with a star.
func syntaxError(text []byte, err error) error {
	found := yamlLine.FindStringSubmatch(err.Error())
	if found == nil {
		return wrong(0, "%s", err.Error())
	}
	out := &Error{Text: plainly(found[2])}
	out.Line, _ = strconv.Atoi(found[1])
	if found[1] == "" {
		out.Line = 1 // it is left out
	} else if ofParser.MatchString(found[2]) {
		out.Line++ // the parser counts from 0, and its scanner from 1
	}
	lines := strings.Split(string(text), "\n")
	for _, at := range []int{out.Line, out.Line + 1, out.Line - 1} { // the parser may be one line off
		if at < 1 || at > len(lines) {
			continue
		}
		if m := special.FindStringSubmatch(strings.TrimRight(lines[at-1], "\r")); m != nil {
			out.Line = at
			out.Text = "YAML gives the character " + m[1][:1] + " at the beginning of a text a meaning of its own; put the text in quotes: " + strconv.Quote(m[1])
			return out
		}
	}
	if out.Line <= len(lines) {
		if near := strings.TrimSpace(lines[out.Line-1]); near != "" && len(near) <= maxNear && !strings.ContainsFunc(near, needsEscape) {
			out.Text += "; the line is: " + near
		}
	}
	return out
}

// maxNear bounds the line that an error repeats, in bytes.
const maxNear = 100

// plainly puts an error of the YAML parser into plain words.
func plainly(text string) string {
	for _, known := range [][2]string{
		{"mapping values are not allowed in this context", `a second ": " in one line, or a field that is indented too far; write each field into a line of its own, and put a text with ": " in quotes`},
		{"did not find expected ',' or ']'", "a list that begins with [ has no ] at its end, or a comma is missing"},
		{"did not find expected ',' or '}'", "an object that begins with { has no } at its end, or a comma is missing"},
		{"did not find expected node content", "a value is missing after [, { or a comma"},
		{"did not find expected key", "the line is not in the column of the fields before it; fields of one object begin in the same column"},
		{"did not find expected '-' indicator", "the line is not an item of the list before it; items begin with - in the same column"},
		{"block sequence entries are not allowed in this context", "a list begins in the line of its field; begin each item in a line of its own, with -"},
		{"could not find expected ':'", "a line has no colon; write name: value, and put a text of several lines in quotes"},
		{"found unexpected end of stream", "a text in quotes does not end; add the closing quote"},
		{"found unexpected document indicator", "a text in quotes does not end before ---; add the closing quote"},
		{"found unknown escape character", `a backslash in "double quotes" begins nothing that is known; put the text in 'single quotes'`},
		{"did not find expected comment or line break", "more text follows the character | or >; begin the text in the next line"},
		{"did not find expected <document start>", "something follows the end of the document; write --- before the next one"},
		{"found character that cannot start any token", "a tab, or a character that cannot begin a value; indent with spaces, and put a text that begins with such a character in quotes"},
		{"found a tab character", "a tab; indent with spaces"},
		{"control characters are not allowed", "a control character; remove it, or write it as \\u0001 in double quotes"},
		{"unknown anchor", "*NAME stands for a value that is marked as &NAME before it, and there is none: " + text},
	} {
		if strings.Contains(text, known[0]) {
			return known[1]
		}
	}
	return "it is no YAML: " + text
}

// WriteYAML writes JSON as YAML in block style, in the same order. Read gives the
// same values back: numbers have the same digits.
func WriteYAML(w io.Writer, raw []byte) error {
	values, err := readJSON(raw)
	if err != nil {
		return err
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	for _, v := range values {
		if err := e.Encode(v.node()); err != nil {
			return err
		}
	}
	return e.Close()
}

func (v *Value) node() *yaml.Node {
	switch v.Kind {
	case List:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v.Items {
			n.Content = append(n.Content, item.node())
		}
		return flowIfEmpty(n)
	case Object:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range v.Members {
			n.Content = append(n.Content, textNode(m.Name), m.Value.node())
		}
		return flowIfEmpty(n)
	case Text:
		return textNode(v.Text)
	case Null:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.Text}
	}
}

func flowIfEmpty(n *yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

// ambiguous are texts that a reader of YAML 1.1 takes for booleans, numbers, times or
// dates.
var ambiguous = regexp.MustCompile(`^(?i:yes|no|on|off|=|[-+]?\.(inf|nan)|[-+.0-9][-+.0-9_:,a-fxotz ]*)$`)

// textNode quotes a text that would be read as something else, by us or by another
// reader of YAML.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if kind, _ := meaning(text); kind != Text || ambiguous.MatchString(text) || strings.ContainsFunc(text, needsEscape) || strings.HasPrefix(strings.TrimLeft(text, " "), "\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// needsEscape: a block of lines would lose these.
func needsEscape(r rune) bool {
	return r < ' ' && r != '\n' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}
