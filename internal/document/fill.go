package document

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Places have the values that ${{ }} in texts stands for: ${{ name }} a value of a list,
// ${{ env:NAME }} a variable of the environment, and ${{ file:PATH }} the text of a file.
type Places struct {
	// Named are the values by name; nil: there are none.
	Named *Value
	// Getenv is os.LookupEnv, or its like in tests.
	Getenv func(name string) (value string, set bool)
	// Dir is the folder from which relative paths count. Empty: that of the process.
	Dir string
	// Advice is the next step for a name without a value, such as "use env:NAME or file:PATH".
	Advice string

	used map[string]bool // names of Named
}

// Unused are the values of Named that no Fill has used, in the order of their file.
func (p *Places) Unused() (out []Member) {
	if p.Named == nil {
		return nil
	}
	for _, m := range p.Named.Members {
		if !p.used[m.Name] {
			out = append(out, m)
		}
	}
	return out
}

// maxPlaced bounds the text of a file, in bytes.
const maxPlaced = 1 << 20

// Misplaced is a text without its value.
type Misplaced struct {
	Line int
	Path string // such as spec.addresses[0]
	Err  error
}

// Fill puts values into the texts of v, but not into those at the paths of literal. A text that
// is nothing but ${{ }} becomes the value with its type. It returns all texts that stay: wrong
// ones have no value, and those of kept have a name of Named at a path of literal.
func (p *Places) Fill(v *Value, literal []string) (wrong, kept []Misplaced) {
	f := filling{Places: p, literal: literal}
	f.value("", v)
	return f.wrong, f.kept
}

type filling struct {
	*Places
	literal []string
	wrong   []Misplaced
	kept    []Misplaced
}

// place is ${{ }} in a text, with the name of its value.
var place = regexp.MustCompile(`\$\{\{\s*([^{}]*?)\s*\}\}`)

// keep notes the values that a literal text names.
func (f *filling) keep(path string, v *Value) {
	for _, m := range place.FindAllStringSubmatch(v.Text, -1) {
		if f.Named != nil && f.Named.Field(m[1]) != nil {
			f.kept = append(f.kept, Misplaced{v.Line, path, fmt.Errorf("${{ %s }} stays as it is written: no value is put into this text", m[1])})
			return
		}
	}
}

func (f *filling) value(path string, v *Value) {
	if slices.Contains(f.literal, path) {
		f.keep(path, v)
		return
	}
	switch v.Kind {
	case Text:
		filled, err := f.text(v.Text)
		if err != nil {
			f.wrong = append(f.wrong, Misplaced{v.Line, path, err})
			return
		}
		line := v.Line
		*v = *filled
		v.Line = line
	case List:
		for i, item := range v.Items {
			f.value(fmt.Sprintf("%s[%d]", path, i), item)
		}
	case Object:
		for _, m := range v.Members {
			f.value(strings.TrimPrefix(path+"."+m.Name, "."), m.Value)
		}
	}
}

func (p *Places) text(text string) (*Value, error) {
	var out strings.Builder
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "${{")
		out.WriteString(before)
		if !found {
			return &Value{Kind: Text, Text: out.String()}, nil
		}
		name, tail, closed := strings.Cut(after, "}}")
		if name = strings.TrimSpace(name); !closed {
			return nil, fmt.Errorf("%q: ${{ without }}", text)
		}
		value, err := p.of(name)
		if err != nil {
			return nil, err
		}
		if before == "" && tail == "" && out.Len() == 0 {
			return value, nil
		}
		if value.IsScalar() {
			out.WriteString(value.Text)
		} else {
			raw, err := value.MarshalJSON()
			if err != nil {
				return nil, err
			}
			out.Write(raw)
		}
		rest = tail
	}
}

// of is the value of a name.
func (p *Places) of(name string) (*Value, error) {
	if variable, is := strings.CutPrefix(name, "env:"); is {
		text, set := p.Getenv(variable)
		if !set {
			return nil, fmt.Errorf("${{ %s }}: the variable is not set", name)
		}
		return &Value{Kind: Text, Text: text}, nil
	}
	if path, is := strings.CutPrefix(name, "file:"); is {
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.Dir, path)
		}
		raw, err := ReadFile(path, maxPlaced)
		if err != nil {
			return nil, err
		}
		return &Value{Kind: Text, Text: strings.TrimRight(string(raw), "\r\n")}, nil
	}
	if p.Named != nil {
		if value := p.Named.Field(name); value != nil {
			if p.used == nil {
				p.used = map[string]bool{}
			}
			p.used[name] = true
			return value, nil
		}
	}
	return nil, fmt.Errorf("${{ %s }} has no value: %s", name, cmp.Or(p.Advice, "use env:NAME or file:PATH"))
}

// ReadFile reads a file of at most most bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(raw)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return raw, err
}
