package addon

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Setting is a setting of the server: a flag, a variable and a key of its file.
type Setting struct {
	// Name is the flag's without dashes. It is unique among all settings of the server.
	Name string
	// Default is the value of a setting that is not given. A list has none.
	Default string
	// Usage is the flag's help.
	Usage string
	// List allows several values.
	List bool
}

// Values are settings by name. A setting that is no list has one value.
type Values map[string][]string

// Text is the value of a setting that is no list.
func (v Values) Text(name string) string { return strings.Join(v[name], ",") }

// List are the values of a list.
func (v Values) List(name string) []string { return v[name] }

// Complete returns the values of all settings, and an error for a value that an add-on
// refuses or a name that none has.
func Complete(all []AddOn, given Values) (Values, error) {
	out := Values{}
	for _, a := range all {
		for _, s := range a.Settings {
			values := given[s.Name]
			if len(values) > 1 && !s.List {
				return nil, fmt.Errorf("%s: %q are several values: give one", s.Name, values)
			}
			if !s.List && (len(values) == 0 || values[0] == "") {
				values = []string{s.Default}
			}
			out[s.Name] = values
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := out[name]; !known {
			return nil, fmt.Errorf("invalid setting %q of add-ons: use one of %s", name, strings.Join(slices.Sorted(maps.Keys(out)), ", "))
		}
	}
	for _, a := range all {
		if a.Check == nil {
			continue
		}
		if err := a.Check(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}
