package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Side is a version of a document or a revision of a job, as one side of a difference.
type Side struct {
	Number int64
	At     time.Time
	By     string
	Spec   json.RawMessage
}

// Change is a field with its values. They are JSON; empty: the field is absent.
type Change struct {
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// PrintChanges shows the fields that differ between two sides.
func PrintChanges(a *cli.App, s *cli.Session, noun string, before, after Side) error {
	changes, err := Changes(before.Spec, after.Spec)
	if err != nil {
		return err
	}
	type difference struct {
		From    int64    `json:"from"`
		To      int64    `json:"to"`
		Changes []Change `json:"changes"`
	}
	d := difference{before.Number, after.Number, changes}
	raw, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if done, err := output.Machine(s.Printer, apiclient.Doc[difference]{Value: d, Raw: raw}); done {
		return err
	}
	text := fmt.Sprintf("%s %d, %s by %s:\n", noun, after.Number, output.Stamp(after.At), output.Clean(after.By))
	for _, c := range changes {
		text += fmt.Sprintf("  %s: %s → %s\n", output.Clean(c.Path), valueCell(c.Before), valueCell(c.After))
	}
	if len(changes) == 0 {
		text += "  no field differs\n"
	}
	_, err = fmt.Fprint(a.Out, text)
	return err
}

func valueCell(value json.RawMessage) string {
	if len(value) == 0 {
		return "nothing"
	}
	return output.Clean(string(value))
}

// Changes are the fields that differ between two objects, by their paths. Lists are compared as a
// whole.
func Changes(before, after json.RawMessage) ([]Change, error) {
	was, is := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := flatten("", before, was); err != nil {
		return nil, fmt.Errorf("read the older settings: %w", err)
	}
	if err := flatten("", after, is); err != nil {
		return nil, fmt.Errorf("read the newer settings: %w", err)
	}
	out := []Change{}
	for path, value := range was {
		if _, both := is[path]; !both {
			out = append(out, Change{Path: path, Before: value})
		}
	}
	for path, value := range is {
		if !bytes.Equal(was[path], value) {
			out = append(out, Change{Path: path, Before: was[path], After: value})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// flatten writes the fields of nested objects by their paths. Null is as good as absent.
func flatten(path string, value json.RawMessage, into map[string]json.RawMessage) error {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) == 0 || string(value) == "null":
		return nil
	case value[0] != '{':
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return err
		}
		into[path] = compact.Bytes()
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return err
	}
	for name, field := range fields {
		if err := flatten(strings.TrimPrefix(path+"."+name, "."), field, into); err != nil {
			return err
		}
	}
	return nil
}
