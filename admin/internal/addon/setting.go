package addon

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is a setting of the server: a flag, a variable and a key of its file.
type Setting struct {
	// Name is the flag's without dashes. It is unique among all settings of the server.
	Name string
	// Default is the value of a setting that is not given. A list has none.
	Default string
	// Usage is the flag's help.
	Usage string
	// Kind says how its value is written.
	Kind Kind
}

// Kind says how the value of a setting is written.
type Kind uint8

// The kinds.
const (
	Text     Kind = iota
	List          // several texts
	Number        // a whole number; none: 0
	Duration      // such as 5m; none: 0
	// Address is a URL whose path is a secret.
	Address
	// Secret names a file. The value is what it holds, or else what the variable of the name
	// without -file holds.
	Secret
)

// Values are settings by name. A setting that is no list has one value.
type Values map[string][]string

// Text is the value of a setting that is no list.
func (v Values) Text(name string) string { return strings.Join(v[name], ",") }

// List are the values of a list.
func (v Values) List(name string) []string { return v[name] }

// Number is the value of a number.
func (v Values) Number(name string) int {
	n, _ := strconv.Atoi(v.Text(name)) // Complete has checked it
	return n
}

// Duration is the value of a duration.
func (v Values) Duration(name string) time.Duration {
	d, _ := time.ParseDuration(v.Text(name)) // Complete has checked it
	return d
}

// check says what is wrong with a value.
func (s *Setting) check(value string) (err error) {
	switch {
	case value == "":
	case s.Kind == Number:
		_, err = strconv.Atoi(value)
	case s.Kind == Duration:
		_, err = time.ParseDuration(value)
	}
	if err != nil {
		return fmt.Errorf("%s: invalid value %q", s.Name, value)
	}
	return nil
}

// Complete returns the values of all settings, and an error for a value that an add-on
// refuses or a name that none has.
func Complete(all []AddOn, given Values) (Values, error) {
	out := Values{}
	for _, a := range all {
		for _, s := range a.Settings {
			values := given[s.Name]
			if s.Kind != List {
				if len(values) > 1 {
					return nil, fmt.Errorf("%s: %q are several values: give one", s.Name, values)
				}
				if len(values) == 0 || values[0] == "" {
					values = []string{s.Default}
				}
				if err := s.check(values[0]); err != nil {
					return nil, err
				}
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
