package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func (f *source) readValues(a *cli.App) (values, error) {
	if f.values == "" {
		return values{}, nil
	}
	objects, err := a.Objects(f.values)
	if err == nil && len(objects) != 1 {
		err = cli.Usagef("%s: has %d objects, want one with a value for each name", f.values, len(objects))
	}
	if err != nil {
		return nil, err
	}
	return objects[0], nil
}

// values are the values of ${{ name }} by name.
type values map[string]json.RawMessage

// literal are the paths of texts of a document in which ${{ }} is not the place of a value.
func literal(kinds []apiclient.DocumentKind, object map[string]json.RawMessage) []string {
	var name string
	if err := json.Unmarshal(object["kind"], &name); err != nil {
		return nil // the server tells
	}
	for _, k := range kinds {
		if k.Name == name {
			return k.Literal
		}
	}
	return nil
}

// fill puts values into the texts of a document, but not into those at the paths of literal. A
// text that is nothing else becomes the value with its type.
func (v values) fill(object map[string]json.RawMessage, literal []string) (json.RawMessage, error) {
	var document any
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(raw), "${{") {
		return raw, nil
	}
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber() // an input may have numbers of any length
	if err := numbers.Decode(&document); err != nil {
		return nil, err
	}
	var wrong unfilled
	filled := v.in("", document, literal, &wrong)
	if len(wrong) > 0 {
		return nil, wrong
	}
	return json.Marshal(filled)
}

// unfilled are the texts of a document that have no value.
type unfilled []unfilledText

type unfilledText struct {
	path string
	err  error
}

func (u unfilled) Error() string { return u[0].err.Error() }

// unfilledOf are the texts that an error of fill names.
func unfilledOf(err error) unfilled {
	if list, is := errors.AsType[unfilled](err); is {
		return list
	}
	return unfilled{{err: err}}
}

func (v values) in(path string, value any, literal []string, wrong *unfilled) any {
	if slices.Contains(literal, path) {
		return value
	}
	switch it := value.(type) {
	case string:
		filled, err := v.text(it)
		if err != nil {
			*wrong = append(*wrong, unfilledText{path, err})
		}
		return filled
	case []any:
		for i := range it {
			it[i] = v.in(path, it[i], literal, wrong)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(it)) {
			it[key] = v.in(strings.TrimPrefix(path+"."+key, "."), it[key], literal, wrong)
		}
	}
	return value
}

func (v values) text(text string) (any, error) {
	var out strings.Builder
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "${{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, tail, closed := strings.Cut(after, "}}")
		if name = strings.TrimSpace(name); !closed {
			return nil, fmt.Errorf("%q: ${{ without }}", text)
		}
		value, err := v.of(name)
		if err != nil {
			return nil, err
		}
		if before == "" && tail == "" && out.Len() == 0 {
			return value, nil
		}
		fmt.Fprint(&out, value)
		rest = tail
	}
}

// of is the value of a name, of env:NAME a variable, of file:PATH a file.
func (v values) of(name string) (any, error) {
	if variable, is := strings.CutPrefix(name, "env:"); is {
		value, set := os.LookupEnv(variable)
		if !set {
			return nil, fmt.Errorf("${{ %s }}: the variable is not set", name)
		}
		return value, nil
	}
	if path, is := strings.CutPrefix(name, "file:"); is {
		raw, err := os.ReadFile(path)
		return strings.TrimRight(string(raw), "\r\n"), err
	}
	raw, known := v[name]
	if !known {
		return nil, fmt.Errorf("${{ %s }} has no value: add it to the file of --values, or use env:NAME or file:PATH", name)
	}
	var value any
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	err := numbers.Decode(&value)
	return value, err
}
